/** Secrets that all nodes have in common, such as the one that signs what is handed out. */
export interface SecretTable {
  /** 32 bytes that nobody can guess, by name: made when they are first asked for, the same for everybody ever after. */
  get(name: string): Promise<Uint8Array>
}
