import type { Signal } from '@preact/signals'
import { useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import { useEffect, useId } from 'preact/hooks'
import type { IconName } from '../theme/icon.tsx'
import { Icon } from '../theme/icon.tsx'
import classes from './overlay.module.css'

/** Something that the palette offers. */
export interface Command {
  readonly label: string
  /** What it belongs to, at the end of the row. */
  readonly group: string
  readonly icon: IconName
  /** Further words it is found by. */
  readonly words?: string
  run(): void
}

/** Commands for what was typed, such as `usage of user-7`. */
export type CommandSource = (typed: string) => readonly Command[]

const sources = new Set<CommandSource>()
let dialog: HTMLDialogElement | null = null

/** Opens the palette. The field has the focus when this returns: what is typed next arrives there. */
export function openPalette(): void {
  if (dialog?.open === false) dialog.showModal()
}

/** Adds commands, such as those of a page; the function that is returned removes them. */
export function offerCommands(source: CommandSource): () => void {
  sources.add(source)
  return () => sources.delete(source)
}

function toggleByKey(event: KeyboardEvent): void {
  if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return
  event.preventDefault()
  if (dialog?.open) dialog.close()
  else openPalette()
}

/** The command palette: Ctrl+K or Cmd+K opens it. The shell has the only one. */
export function CommandPalette(): JSX.Element {
  const typed = useSignal('')
  const selected = useSignal(0)
  useEffect(() => {
    document.addEventListener('keydown', toggleByKey)
    return () => document.removeEventListener('keydown', toggleByKey)
  }, [])
  return (
    <dialog
      ref={(element) => {
        dialog = element
      }}
      class={`${classes.dialog} ${classes.palette}`}
      aria-label="Command palette"
      onClose={() => {
        typed.value = ''
        selected.value = 0
      }}
    >
      <Palette typed={typed} selected={selected} />
    </dialog>
  )
}

interface PaletteProps {
  readonly typed: Signal<string>
  readonly selected: Signal<number>
}

function choose(command: Command | undefined): void {
  if (command === undefined) return
  dialog?.close()
  command.run()
}

function Palette({ typed, selected }: PaletteProps): JSX.Element {
  const listId = useId()
  const onKeyDown = (event: KeyboardEvent): void => {
    // Read now and not when it was last drawn: the keys of a quick typist come first.
    const found = matching(typed.value)
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step !== undefined) {
      event.preventDefault()
      selected.value = (selected.value + step + found.length) % Math.max(1, found.length)
      document.getElementById(`${listId}-${selected.value}`)?.scrollIntoView({ block: 'nearest' })
    } else if (event.key === 'Enter') {
      event.preventDefault()
      choose(found[selected.value])
    }
  }
  return (
    <>
      <input
        class={classes.paletteInput}
        type="text"
        role="combobox"
        aria-expanded="true"
        aria-controls={listId}
        aria-activedescendant={`${listId}-${selected.value}`}
        aria-label="Search pages and actions"
        placeholder="Go to a page, or type a user, key or address"
        value={typed.value}
        onInput={(event) => {
          typed.value = event.currentTarget.value
          selected.value = 0
        }}
        onKeyDown={onKeyDown}
      />
      <div class={classes.paletteList} id={listId} role="listbox" aria-label="Commands">
        {matching(typed.value).map((command, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the field above
          // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the field above
          <div
            key={`${command.group} ${command.label}`}
            id={`${listId}-${index}`}
            class={classes.paletteItem}
            role="option"
            aria-selected={index === selected.value}
            onClick={() => choose(command)}
          >
            <Icon name={command.icon} />
            {command.label}
            <small>{command.group}</small>
          </div>
        ))}
      </div>
    </>
  )
}

function matching(typed: string): readonly Command[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean)
  return [...sources]
    .flatMap((source) => source(typed.trim()))
    .filter((command) => {
      const text = `${command.label} ${command.group} ${command.words ?? ''}`.toLowerCase()
      return words.every((word) => text.includes(word))
    })
    .slice(0, 12)
}
