import type { ComponentChildren, JSX } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
import { Button } from '../controls/button.tsx'
import classes from './overlay.module.css'

export interface DialogProps {
  readonly title: string
  readonly isOpen: boolean
  readonly onClose: () => void
  readonly children: ComponentChildren
  /** Buttons at the end; the one that does the work last. */
  readonly actions?: ComponentChildren
  /** For comparisons and editors. */
  readonly isWide?: boolean
}

/** A dialog over the page. The browser keeps the focus inside and returns it; Escape closes. */
export function Dialog({ title, isOpen, onClose, children, actions, isWide = false }: DialogProps): JSX.Element {
  const titleId = useId()
  const element = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    if (isOpen && !element.current?.open) element.current?.showModal()
    if (!isOpen && element.current?.open) element.current.close()
  }, [isOpen])
  return (
    <dialog ref={element} class={classes.dialog} data-wide={isWide} aria-labelledby={titleId} onClose={onClose}>
      {isOpen ? (
        <>
          <div class={classes.dialogHead}>
            <h2 id={titleId}>{title}</h2>
            <Button kind="quiet" icon="close" label="Close" onClick={onClose} />
          </div>
          <div class={classes.dialogBody}>
            {children}
            {actions === undefined ? null : <div class={classes.dialogActions}>{actions}</div>}
          </div>
        </>
      ) : null}
    </dialog>
  )
}
