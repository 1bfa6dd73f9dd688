import type { ComponentChildren, JSX } from 'preact'
import { hrefOf, location, navigate } from './router.ts'

export interface LinkProps {
  /** A path of the dashboard, such as `/rules?stage=draft`. */
  readonly to: string
  readonly class?: string | undefined
  readonly title?: string | undefined
  readonly children: ComponentChildren
  readonly onFollow?: (() => void) | undefined
  /** Marks the link of the current page, for style sheets and screen readers. */
  readonly isNavigation?: boolean
}

/** A link to a page of the dashboard. A new tab, a copied address and a middle click work as with any link. */
export function Link({ to, children, onFollow, isNavigation = false, ...rest }: LinkProps): JSX.Element {
  const isCurrent = isNavigation && isWithin(to, location.value.path)
  const follow = (event: MouseEvent): void => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return
    event.preventDefault()
    navigate(to)
    onFollow?.()
  }
  return (
    <a {...rest} href={hrefOf(to)} onClick={follow} aria-current={isCurrent ? 'page' : undefined}>
      {children}
    </a>
  )
}

function isWithin(to: string, path: string): boolean {
  const target = to.split('?')[0] ?? to
  return path === target || (target !== '/' && path.startsWith(`${target}/`))
}
