import type { ComponentChildren, JSX } from 'preact'
import { useEffect } from 'preact/hooks'
import classes from './shell.module.css'

export interface PageProps {
  readonly title: string
  /** Stands in the tab of the browser. Default: the title. */
  readonly documentTitle?: string
  /** Badges beside the title. */
  readonly badges?: ComponentChildren
  readonly description?: ComponentChildren
  /** Buttons and filters at the end of the header. */
  readonly actions?: ComponentChildren
  readonly children: ComponentChildren
}

/** A page: its header, and what is on it. */
export function Page({ title, documentTitle = title, badges, description, actions, children }: PageProps): JSX.Element {
  useEffect(() => {
    document.title = `${documentTitle} · Sluice`
  }, [documentTitle])
  return (
    <div class={classes.page}>
      <header class={classes.header}>
        <div class={classes.headerText}>
          <div class={classes.headerTitle}>
            <h1>{title}</h1>
            {badges}
          </div>
          {description === undefined ? null : <p>{description}</p>}
        </div>
        {actions === undefined ? null : <div class={classes.headerActions}>{actions}</div>}
      </header>
      {children}
    </div>
  )
}

export interface CardProps {
  readonly title?: ComponentChildren
  readonly description?: ComponentChildren
  readonly actions?: ComponentChildren
  /** Tables and charts go to the edge. */
  readonly isFlush?: boolean
  readonly children: ComponentChildren
}

/** A framed part of a page. */
export function Card({ title, description, actions, isFlush = false, children }: CardProps): JSX.Element {
  return (
    <section class={classes.card}>
      {title === undefined && actions === undefined ? null : (
        <div class={classes.cardHead}>
          <div>
            <h2>{title}</h2>
            {description === undefined ? null : <p>{description}</p>}
          </div>
          {actions}
        </div>
      )}
      <div class={isFlush ? undefined : classes.cardBody}>{children}</div>
    </section>
  )
}
