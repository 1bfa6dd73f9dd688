/** The visible part of an API key. Whoever gives the whole key gives it away no further than this. */
export function keyId(text: string): string {
  return text.replace(/^(slk_[0-9A-Za-z]+)_.*$/s, '$1')
}
