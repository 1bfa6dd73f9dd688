/** Who changes something, as it will stand in the audit log. */
export interface Author {
  /** Such as the name of an API key: 1 to 200 characters. Several keys may have it. */
  readonly name: string
  /** The id of the API key, which no other has: 1 to 200 characters. Left out for what is not done with a key. */
  readonly keyId?: string
  /** Why, in the author's words. */
  readonly note?: string
}
