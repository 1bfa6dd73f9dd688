export type { GatewayConfig } from './config/gateway-config.ts'
