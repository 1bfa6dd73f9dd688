import type { ComponentChildren, JSX } from 'preact'
import { useId } from 'preact/hooks'
import { queryParameter, setQuery } from '../navigation/router.ts'
import classes from './controls.module.css'

/** One tab. */
export interface Tab {
  /** Stands in the URL. */
  readonly id: string
  readonly label: ComponentChildren
  readonly content: () => JSX.Element | null
}

export interface TabsProps {
  readonly label: string
  /** The first is shown when the URL names none. */
  readonly tabs: readonly Tab[]
  /** Name of the parameter in the URL. Default: `tab`. */
  readonly parameter?: string
}

/** Tabs, the selected one in the URL. Arrow keys, Home and End move between them. */
export function Tabs({ label, tabs, parameter = 'tab' }: TabsProps): JSX.Element {
  const baseId = useId()
  const wanted = queryParameter(parameter)
  const selectedIndex = Math.max(
    0,
    tabs.findIndex(({ id }) => id === wanted),
  )
  const select = (index: number): void => {
    const next = (index + tabs.length) % tabs.length
    setQuery({ [parameter]: next === 0 ? undefined : tabs[next]?.id })
    document.getElementById(`${baseId}-tab-${next}`)?.focus()
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    const moves: Readonly<Record<string, number>> = {
      ArrowRight: selectedIndex + 1,
      ArrowLeft: selectedIndex - 1,
      Home: 0,
      End: tabs.length - 1,
    }
    const target = moves[event.key]
    if (target === undefined) return
    event.preventDefault()
    select(target)
  }
  return (
    <div>
      <div class={classes.tabs} role="tablist" aria-label={label} onKeyDown={onKeyDown}>
        {tabs.map((tab, index) => (
          <button
            key={tab.id}
            type="button"
            role="tab"
            id={`${baseId}-tab-${index}`}
            class={classes.tab}
            aria-selected={index === selectedIndex}
            aria-controls={`${baseId}-panel`}
            tabIndex={index === selectedIndex ? 0 : -1}
            onClick={() => select(index)}
          >
            {tab.label}
          </button>
        ))}
      </div>
      <div
        id={`${baseId}-panel`}
        class={classes.tabPanel}
        role="tabpanel"
        aria-labelledby={`${baseId}-tab-${selectedIndex}`}
      >
        {tabs[selectedIndex]?.content()}
      </div>
    </div>
  )
}
