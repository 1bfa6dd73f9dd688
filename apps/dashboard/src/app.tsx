import { useSignal } from '@preact/signals'
import type { FunctionComponent, JSX } from 'preact'
import { useEffect, useMemo } from 'preact/hooks'
import { asApiError } from './api/api-error.ts'
import { session } from './api/session.ts'
import { callerCommands } from './pages/callers/caller.ts'
import type { PageParameters, Route } from './pages/routes.ts'
import { ROUTES } from './pages/routes.ts'
import { SignInPage } from './pages/sign-in/sign-in-page.tsx'
import { Button } from './ui/controls/button.tsx'
import { Empty, ErrorNotice, Loading } from './ui/feedback/states.tsx'
import { location, matchPath, navigate } from './ui/navigation/router.ts'
import { Shell } from './ui/shell/shell.tsx'

const ITEMS = ROUTES.flatMap(({ path, navigation }) => (navigation === undefined ? [] : [{ path, ...navigation }]))

/** The whole page: the sign-in, or the shell with the page that the URL names. */
export function App(): JSX.Element {
  const { path } = location.value
  const found = useMemo(() => routeOf(path), [path])
  const who = session.value
  if (who === 'unknown') return <Loading label="Loading the dashboard" />
  if (who === 'none' && found?.route.isPublic !== true) return <SignInPage />
  return (
    <Shell items={ITEMS} commands={callerCommands}>
      {found === undefined ? <NotFound /> : <LoadedPage key={found.route.path} {...found} />}
    </Shell>
  )
}

interface FoundRoute extends PageParameters {
  readonly route: Route
}

function routeOf(path: string): FoundRoute | undefined {
  // `/sign-in` leads on once somebody is signed in.
  const wanted = path === '/sign-in' ? '/' : path
  for (const route of ROUTES) {
    const parameters = matchPath(route.path, wanted)
    if (parameters !== undefined) return { route, parameters }
  }
  return undefined
}

/** A page whose code is loaded when it is first opened. */
function LoadedPage({ route, parameters }: FoundRoute): JSX.Element {
  const state = useSignal<{ page?: FunctionComponent<PageParameters>; error?: unknown }>({})
  const load = async (): Promise<void> => {
    try {
      state.value = { page: await route.load() }
    } catch (cause) {
      state.value = { error: cause }
    }
  }
  useEffect(() => void load(), [])
  const { page: PageComponent, error } = state.value
  if (error !== undefined) return <ErrorNotice error={asApiError(error)} onRetry={() => void load()} />
  return PageComponent === undefined ? <Loading /> : <PageComponent parameters={parameters} />
}

function NotFound(): JSX.Element {
  return (
    <Empty title="There is no page here" action={<Button onClick={() => navigate('/')}>Open the overview</Button>}>
      The address may be of a newer version of the service, or mistyped.
    </Empty>
  )
}
