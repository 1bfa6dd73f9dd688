import { useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import { useEffect } from 'preact/hooks'
import type { ApiError } from '../../api/api-error.ts'
import { asApiError } from '../../api/api-error.ts'
import { serviceUrl } from '../../api/connection.ts'
import { signIn } from '../../api/session.ts'
import { Button } from '../../ui/controls/button.tsx'
import { TextInput } from '../../ui/controls/field.tsx'
import { ErrorNotice } from '../../ui/feedback/states.tsx'
import { Link } from '../../ui/navigation/link.tsx'
import { location, navigate } from '../../ui/navigation/router.ts'
import classes from './sign-in.module.css'

const KEY_HINT =
  'The service printed one when it was first started. The key leaves this page once; a cookie that scripts cannot ' +
  'read takes its place.'

/** Signs in with an API key. Stands in the place of a page that needs a session, and leads to it afterwards. */
export function SignInPage(): JSX.Element {
  const apiKey = useSignal('')
  const failure = useSignal<ApiError | undefined>(undefined)
  const isBusy = useSignal(false)
  useEffect(() => {
    document.title = 'Sign in · Sluice'
  }, [])
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault()
    isBusy.value = true
    failure.value = undefined
    try {
      await signIn(apiKey.value.trim())
      if (location.peek().path === '/sign-in') navigate('/', { replace: true })
    } catch (error) {
      failure.value = asApiError(error)
    } finally {
      apiKey.value = ''
      isBusy.value = false
    }
  }
  return (
    <main class={classes.screen}>
      <div class={classes.panel}>
        <div class={classes.brand}>
          <img src={serviceUrl('/sluice.svg').href} alt="" />
          <div>
            <h1>Sluice</h1>
            <p>Rate limits: who is denied, by which rule, and why.</p>
          </div>
        </div>
        <form class={classes.form} onSubmit={(event) => void submit(event)}>
          <TextInput
            label="API key"
            type="password"
            isCode
            autoFocus
            required
            autoComplete="current-password"
            placeholder="slk_…"
            value={apiKey.value}
            onInput={(value) => {
              apiKey.value = value
            }}
            hint={KEY_HINT}
          />
          {failure.value === undefined ? null : <ErrorNotice error={failure.value} />}
          <Button type="submit" kind="primary" isBusy={isBusy.value}>
            Sign in
          </Button>
        </form>
        <p class={classes.note}>
          No key? Create one with <code>sluice keys create</code>, or try the{' '}
          <Link to="/playground">algorithm playground</Link>, which needs none.
        </p>
      </div>
    </main>
  )
}
