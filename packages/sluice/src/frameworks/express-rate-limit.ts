export { type SluiceRateLimitStore, type SluiceStoreOptions, sluiceStore } from '@sluice/middleware/express-rate-limit'
