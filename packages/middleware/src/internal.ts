// For the packages of this workspace only: who a request comes from. May change at any time.
export { credentialsIn, keyIn, singleLine } from './identity/by-api-key.ts'
export { type CompiledTrust, clientAddress, compileTrust } from './identity/client-address.ts'
