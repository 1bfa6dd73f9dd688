import { ToolError } from './tool-error.ts'

/** Where the URL of the repository may stand, first one first. */
export interface RepositorySources {
  /** Arguments of the program: `--repository URL`. */
  readonly args: readonly string[]
  /** `repository` of the workspace's package.json. */
  readonly manifest: { readonly url: string } | string | undefined
  /** GitHub Actions sets GITHUB_SERVER_URL and GITHUB_REPOSITORY. */
  readonly environment: Readonly<Record<string, string | undefined>>
}

/** What to do about a repository that is not known, as a part of a message. */
export const HOW_TO_NAME_REPOSITORY =
  'Add "repository": { "type": "git", "url": "git+https://<host>/<owner>/<name>.git" } to package.json, or pass ' +
  '--repository https://<host>/<owner>/<name>, or run it in GitHub Actions, which sets GITHUB_SERVER_URL and ' +
  'GITHUB_REPOSITORY.'

/**
 * The URL that belongs into the package, such as `git+https://git.example/owner/name.git`. npm compares it with the
 * repository that built the package, and publishes without provenance if they differ. Undefined if no source has one.
 *
 * @throws ToolError `INVALID_REPOSITORY`
 */
export function repositoryUrl({ args, manifest, environment }: RepositorySources): string | undefined {
  const at = args.indexOf('--repository')
  const { GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: name } = environment
  const inEnvironment = server && name ? `${server}/${name}` : undefined
  const inManifest = typeof manifest === 'string' ? manifest : manifest?.url
  const found = at < 0 ? (inManifest ?? inEnvironment) : (args[at + 1] ?? '')
  if (found === undefined) return undefined
  const address = found
    .replace(/^git\+/, '')
    .replace(/\/$/, '')
    .replace(/\.git$/, '')
  if (!/^https:\/\/[\w.-]+(?::\d+)?(?:\/[\w.~-]+){2,}$/.test(address)) {
    throw new ToolError(
      'INVALID_REPOSITORY',
      `The repository cannot be used; received ${JSON.stringify(found)}; expected https://<host>/<owner>/<name>. ` +
        HOW_TO_NAME_REPOSITORY,
    )
  }
  return `git+${address}.git`
}
