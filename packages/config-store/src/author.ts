/** Who changes something, as it will stand in the audit log, such as the name of an API key. 1 to 200 characters. */
export interface Author {
  readonly name: string
  /** Why, in the author's words. */
  readonly note?: string
}
