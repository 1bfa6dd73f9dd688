import 'reflect-metadata'
import { Controller, Get, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { RateLimitModule } from 'sluice/nest'

class HelloController {
  hello() {
    return 'hello\n'
  }
}

class AppModule {}

// What the decorators of the README do: plain JavaScript has no syntax for them.
Get()(HelloController.prototype, 'hello', Object.getOwnPropertyDescriptor(HelloController.prototype, 'hello'))
Controller()(HelloController)
Module({
  imports: [RateLimitModule.forRoot({ limit: 5, window: '1m' })],
  controllers: [HelloController],
})(AppModule)

const app = await NestFactory.create(AppModule, { logger: ['warn', 'error'] })

await app.listen(process.env.PORT ?? 3000, '127.0.0.1')
console.log(await app.getUrl())
process.once('SIGTERM', () => app.close())
