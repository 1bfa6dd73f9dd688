export { checkGatewayConfig, type GatewayCheckOptions } from './config/check-gateway-config.ts'
export { compileGateway } from './config/compile-gateway.ts'
export type { CompiledConfig } from './config/compiled-config.ts'
export type { GatewayConfig } from './config/gateway-config.ts'
