import type { ComponentChildren, JSX } from 'preact'
import type { IconName } from '../theme/icon.tsx'
import { Icon } from '../theme/icon.tsx'
import classes from './controls.module.css'

export interface ButtonProps {
  readonly children?: ComponentChildren
  /** Default: `normal`. One `primary` button on a page at most. */
  readonly kind?: 'normal' | 'primary' | 'danger' | 'quiet'
  readonly icon?: IconName | undefined
  /** What the button does, where it has no text. Also its tooltip. */
  readonly label?: string | undefined
  readonly title?: string | undefined
  readonly type?: 'button' | 'submit'
  readonly disabled?: boolean | undefined
  /** Shows that work is going on, and takes no click meanwhile. */
  readonly isBusy?: boolean | undefined
  readonly isPressed?: boolean | undefined
  readonly onClick?: ((event: MouseEvent) => void) | undefined
}

/** A button. With an icon and no children it is square, and needs a `label`. */
export function Button(props: ButtonProps): JSX.Element {
  const { children, kind = 'normal', icon, label, title = label, type = 'button', disabled, isBusy, isPressed } = props
  const names = [classes.button, kind === 'normal' ? '' : classes[kind], children === undefined ? classes.iconOnly : '']
  return (
    <button
      type={type}
      class={names.join(' ')}
      title={title}
      aria-label={label}
      aria-pressed={isPressed}
      aria-busy={isBusy}
      disabled={disabled === true || isBusy === true}
      onClick={props.onClick}
    >
      {icon === undefined ? null : <Icon name={icon} />}
      {children}
    </button>
  )
}
