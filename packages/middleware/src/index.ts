export type { Admission, HttpOutcome, Refusal } from './http-outcome.ts'
export type { HttpRequest } from './http-request.ts'
