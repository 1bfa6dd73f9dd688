/** The platform's `fetch`, or anything that is called like it. */
export type FetchFunction = (input: string | URL | Request, init?: RequestInit) => Promise<Response>

/** `fetch` of the platform, looked up when it is called. */
export const platformFetch: FetchFunction = (input, init) => fetch(input, init)
