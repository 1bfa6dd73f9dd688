import { useComputed, useSignal } from '@preact/signals'
import type { Calls } from '@sluice/contract'
import type { JSX } from 'preact'
import { useEffect } from 'preact/hooks'
import type { ApiError } from '../../api/api-error.ts'
import { asApiError } from '../../api/api-error.ts'
import { call } from '../../api/client.ts'
import { Empty, ErrorNotice } from '../../ui/feedback/states.tsx'
import { location, navigate } from '../../ui/navigation/router.ts'
import { Card, Page } from '../../ui/shell/page.tsx'
import { explainPath, LINKED_FIELDS } from '../callers/caller.ts'
import type { ExplainedRequest } from './curl.ts'
import classes from './explain.module.css'
import { ExplanationView } from './explanation-view.tsx'
import { RequestForm } from './request-form.tsx'

/** Says how a request is decided: every rule considered, why, and its counter. The URL holds the request. */
export function ExplainPage(): JSX.Element {
  const linked = useComputed(() => linkedRequest(location.value.query))
  const request = useSignal<ExplainedRequest>(linked.peek())
  const answer = useSignal<Calls['explain']['answer'] | undefined>(undefined)
  const error = useSignal<ApiError | undefined>(undefined)
  const isBusy = useSignal(false)
  const explain = async (asked: ExplainedRequest): Promise<void> => {
    isBusy.value = true
    try {
      answer.value = await call('explain', { body: { ...asked, resource: asked.resource ?? '' } })
      error.value = undefined
    } catch (cause) {
      error.value = asApiError(cause)
    }
    isBusy.value = false
  }
  useEffect(() => {
    const asked = linked.peek()
    request.value = { ...request.peek(), ...asked }
    if (asked.resource !== undefined) void explain(request.peek())
  }, [linked.value])
  const submit = (): void => {
    const path = explainPath(request.value)
    const isSamePage = path === `/explain?${location.value.query}`
    if (isSamePage) void explain(request.value)
    else navigate(path)
  }
  return (
    <Page
      title="Explain"
      description="Every rule considered for a request, why it holds or not, and its counter. Nothing is charged."
    >
      <div class={classes.layout}>
        <div class={classes.side}>
          <Card title="Request">
            <RequestForm
              request={request.value}
              isBusy={isBusy.value}
              onChange={(next) => {
                request.value = next
              }}
              onSubmit={submit}
            />
          </Card>
        </div>
        <div class={classes.answer} aria-live="polite">
          {error.value === undefined ? null : <ErrorNotice error={error.value} />}
          {answer.value === undefined ? null : <ExplanationView explanation={answer.value} />}
          {answer.value === undefined && error.value === undefined ? (
            <Card>
              <Empty title="What would happen?" icon="explain">
                Name a resource and a caller, such as POST /orders by user ada, or paste a curl command.
              </Empty>
            </Card>
          ) : null}
        </div>
      </div>
    </Page>
  )
}

function linkedRequest(query: URLSearchParams): ExplainedRequest {
  const given = LINKED_FIELDS.flatMap((name) => {
    const value = query.get(name)
    return value === null || value === '' ? [] : [[name, value] as const]
  })
  const tokens = query.get('tokens')
  return { ...Object.fromEntries(given), ...(tokens === null ? {} : { tokens: Number(tokens) }) }
}
