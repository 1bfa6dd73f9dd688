import { useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import { Button } from '../../ui/controls/button.tsx'
import { TextArea, TextInput } from '../../ui/controls/field.tsx'
import { Notice } from '../../ui/feedback/states.tsx'
import type { ExplainedRequest } from './curl.ts'
import { readPasted } from './curl.ts'
import classes from './explain.module.css'

const CALLER_FIELDS = [
  { name: 'user', label: 'User' },
  { name: 'tenant', label: 'Tenant' },
  { name: 'ip', label: 'Address' },
  { name: 'apiKey', label: 'API key' },
  { name: 'service', label: 'Service' },
  { name: 'region', label: 'Region' },
  { name: 'tier', label: 'Tier' },
] as const

export interface RequestFormProps {
  readonly request: ExplainedRequest
  readonly isBusy: boolean
  readonly onChange: (request: ExplainedRequest) => void
  readonly onSubmit: () => void
}

/** Who calls what: typed, or taken from what was pasted. */
export function RequestForm({ request, isBusy, onChange, onSubmit }: RequestFormProps): JSX.Element {
  const set = (name: keyof ExplainedRequest, text: string): void => onChange(withField(request, name, text))
  return (
    <form
      class={classes.form}
      onSubmit={(event) => {
        event.preventDefault()
        onSubmit()
      }}
    >
      <PasteBox onRead={onChange} />
      <div class={classes.line}>
        <TextInput
          label="Method"
          placeholder="GET"
          isCode
          value={request.method ?? ''}
          onInput={(text) => set('method', text.toUpperCase())}
        />
        <TextInput
          label="Resource"
          placeholder="/orders"
          isCode
          required
          value={request.resource ?? ''}
          onInput={(text) => set('resource', text)}
        />
      </div>
      <div class={classes.fields}>
        {CALLER_FIELDS.map(({ name, label }) => (
          <TextInput key={name} label={label} value={request[name] ?? ''} onInput={(text) => set(name, text)} />
        ))}
        <TextInput
          label="Tokens"
          placeholder="1"
          value={request.tokens === undefined ? '' : String(request.tokens)}
          onInput={(text) => set('tokens', text)}
        />
      </div>
      <Descriptors request={request} onChange={onChange} />
      <Button kind="primary" type="submit" icon="explain" isBusy={isBusy}>
        Explain
      </Button>
    </form>
  )
}

/** An empty field is not part of the request. */
function withField(request: ExplainedRequest, name: keyof ExplainedRequest, text: string): ExplainedRequest {
  const { [name]: _old, ...others } = request
  if (text === '') return others
  return { ...others, [name]: name === 'tokens' && /^\d+$/.test(text) ? Number(text) : text }
}

function PasteBox({ onRead }: { onRead: (request: ExplainedRequest) => void }): JSX.Element {
  const text = useSignal('')
  const read = text.value.trim() === '' ? undefined : (readPasted(text.value) ?? 'unreadable')
  return (
    <>
      <TextArea
        label="Paste a request"
        hint="A curl command, a request line with headers, a URL, or the JSON of a check."
        placeholder="curl -X POST https://api.example.com/orders -H 'X-User-Id: ada'"
        isCode
        rows={3}
        value={text.value}
        problem={read === 'unreadable' ? 'This is no curl command, request line, URL or JSON of a check.' : undefined}
        onInput={(typed) => {
          text.value = typed
          const found = readPasted(typed)
          if (found !== undefined) onRead(found.request)
        }}
      />
      {typeof read === 'object' && read.notes.length > 0 ? (
        <Notice icon="lock">
          {read.notes.map((note) => (
            <div key={note}>{note}</div>
          ))}
        </Notice>
      ) : null}
    </>
  )
}

function Descriptors({ request, onChange }: Pick<RequestFormProps, 'request' | 'onChange'>): JSX.Element {
  const typed = useSignal<string | undefined>(undefined)
  const given = request.descriptors === undefined ? '' : JSON.stringify(request.descriptors)
  return (
    <TextInput
      label="Descriptors"
      placeholder='{"model":"large"}'
      isCode
      value={typed.value ?? given}
      problem={typed.value === undefined ? undefined : 'Expected a JSON object, such as {"model":"large"}.'}
      onInput={(text) => {
        const parsed = text.trim() === '' ? undefined : parsedObject(text)
        typed.value = parsed === 'unreadable' ? text : undefined
        if (parsed === 'unreadable') return
        const { descriptors: _old, ...others } = request
        onChange(parsed === undefined ? others : { ...others, descriptors: parsed })
      }}
    />
  )
}

function parsedObject(text: string): NonNullable<ExplainedRequest['descriptors']> | 'unreadable' {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as NonNullable<ExplainedRequest['descriptors']>)
      : 'unreadable'
  } catch {
    return 'unreadable'
  }
}
