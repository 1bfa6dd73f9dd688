import { expectTypeOf } from 'vitest'
import { rateLimit } from './fetch.ts'

interface Params {
  readonly params: Promise<{ readonly id: string }>
}

const limited = rateLimit({ limit: 100, window: '1m' })

// Whatever a handler takes beside the request, it still takes.
expectTypeOf(limited(() => new Response())).toEqualTypeOf<(request: Request) => Promise<Response>>()
expectTypeOf(limited(async (_: Request, { params }: Params) => new Response((await params).id))).toEqualTypeOf<
  (request: Request, context: Params) => Promise<Response>
>()

// Options that read it say what it is, and handlers must take that.
const perPeer = rateLimit({ limit: 100, window: '1m', address: (_, server: { readonly peer: string }) => server.peer })
expectTypeOf(perPeer(() => new Response())).parameters.toEqualTypeOf<
  [request: Request, server: { readonly peer: string }]
>()
// @ts-expect-error: the address is read from something else
perPeer((_: Request, id: number) => new Response(String(id)))
