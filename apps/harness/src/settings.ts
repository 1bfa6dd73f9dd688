/** The API key for a service under test, from `SLUICE_API_KEY`; undefined when it is not set. Never printed. */
export function readApiKey(
  environment: Readonly<Record<string, string | undefined>> = process.env,
): string | undefined {
  return environment['SLUICE_API_KEY'] || undefined
}
