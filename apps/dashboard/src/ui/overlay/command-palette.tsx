import { signal, useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
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

const isOpen = signal(false)
const sources = new Set<CommandSource>()

/** Opens the palette. */
export function openPalette(): void {
  isOpen.value = true
}

/** Adds commands, such as those of a page; the function that is returned removes them. */
export function offerCommands(source: CommandSource): () => void {
  sources.add(source)
  return () => sources.delete(source)
}

/** The command palette: Ctrl+K or Cmd+K opens it. The shell has the only one. */
export function CommandPalette(): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return
      event.preventDefault()
      isOpen.value = !isOpen.value
    }
    document.addEventListener('keydown', onKeyDown)
    return () => document.removeEventListener('keydown', onKeyDown)
  }, [])
  useEffect(() => {
    if (isOpen.value) dialog.current?.showModal()
    else dialog.current?.close()
  }, [isOpen.value])
  return (
    <dialog
      ref={dialog}
      class={`${classes.dialog} ${classes.palette}`}
      aria-label="Command palette"
      onClose={() => {
        isOpen.value = false
      }}
    >
      {isOpen.value ? <Palette /> : null}
    </dialog>
  )
}

function Palette(): JSX.Element {
  const listId = useId()
  const typed = useSignal('')
  const selected = useSignal(0)
  const input = useRef<HTMLInputElement>(null)
  useEffect(() => input.current?.focus(), [])
  const found = matching(typed.value)
  const choose = (command: Command | undefined): void => {
    if (command === undefined) return
    isOpen.value = false
    command.run()
  }
  const onKeyDown = (event: KeyboardEvent): void => {
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
    <div>
      <input
        ref={input}
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
        {found.map((command, index) => (
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
    </div>
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
