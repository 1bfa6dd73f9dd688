/** What browsers call themselves; the first that matches, because most also name those that they resemble. */
const BROWSERS = [
  [/\bEdg\/(\d+)/, 'Edge'],
  [/\bOPR\/(\d+)/, 'Opera'],
  [/\bFirefox\/(\d+)/, 'Firefox'],
  [/Chrome\/(\d+)/, 'Chrome'],
  [/\bVersion\/(\d+).* Safari\//, 'Safari'],
] as const

const SYSTEMS = [
  [/Windows/, 'Windows'],
  [/Android/, 'Android'],
  [/iPhone|iPad/, 'iOS'],
  [/Mac OS X/, 'macOS'],
  [/Linux/, 'Linux'],
] as const

/** A browser by its user agent, such as `Chrome 156 on Linux`. A program that is no browser keeps its own words. */
export function browserName(userAgent: string): string {
  for (const [pattern, name] of BROWSERS) {
    const [, version] = pattern.exec(userAgent) ?? []
    if (version === undefined) continue
    const system = SYSTEMS.find(([words]) => words.test(userAgent))?.[1]
    return system === undefined ? `${name} ${version}` : `${name} ${version} on ${system}`
  }
  return userAgent
}
