import { useSignal } from '@preact/signals'
import type { ComponentChildren, JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { serviceUrl } from '../../api/connection.ts'
import { currentRole, session, signOut } from '../../api/session.ts'
import { Button } from '../controls/button.tsx'
import { OfflineNotice } from '../feedback/states.tsx'
import { Link } from '../navigation/link.tsx'
import { location, navigate } from '../navigation/router.ts'
import type { CommandSource } from '../overlay/command-palette.tsx'
import { CommandPalette, offerCommands, openPalette } from '../overlay/command-palette.tsx'
import { showFailure, Toasts } from '../overlay/toast.tsx'
import type { IconName } from '../theme/icon.tsx'
import { Icon } from '../theme/icon.tsx'
import type { Theme } from '../theme/theme.ts'
import { setTheme, theme } from '../theme/theme.ts'
import classes from './shell.module.css'

/** A page in the navigation. */
export interface NavigationItem {
  readonly path: string
  readonly label: string
  readonly icon: IconName
  readonly group: string
  /** Shown at the end of the link, such as the number of firing alerts. */
  readonly note?: () => JSX.Element | null
}

const NEXT_THEME: Readonly<Record<Theme, Theme>> = { system: 'light', light: 'dark', dark: 'system' }
const THEME_ICONS = { system: 'display', light: 'sun', dark: 'moon' } as const

export interface ShellProps {
  readonly items: readonly NavigationItem[]
  /** Offered by the palette after pages and settings. */
  readonly commands: CommandSource
  readonly children: ComponentChildren
}

/** The frame of every page: navigation, palette, messages. */
export function Shell({ items, commands, children }: ShellProps): JSX.Element {
  const isRailOpen = useSignal(false)
  const main = useRef<HTMLElement>(null)
  const { path } = location.value
  const lastPath = useRef(path)
  useEffect(() => {
    isRailOpen.value = false
    // A new page is announced and read from its start, as after a load.
    if (lastPath.current !== path) main.current?.focus({ preventScroll: true })
    lastPath.current = path
  }, [path])
  useEffect(() => offerCommands((typed) => [...pageCommands(items), ...settingCommands(), ...commands(typed)]), [])
  return (
    <div class={classes.shell}>
      <button type="button" class={classes.skip} onClick={() => main.current?.focus()}>
        Skip to content
      </button>
      <header class={classes.bar}>
        <Brand />
        <span>
          <Button kind="quiet" icon="search" label="Search" onClick={openPalette} />
          <Button
            kind="quiet"
            icon="menu"
            label="Menu"
            onClick={() => {
              isRailOpen.value = true
            }}
          />
        </span>
      </header>
      {isRailOpen.value ? (
        <button
          type="button"
          class={classes.scrim}
          aria-label="Close menu"
          onClick={() => {
            isRailOpen.value = false
          }}
        />
      ) : null}
      <Rail items={items} isOpen={isRailOpen.value} />
      <main id="main" ref={main} class={classes.main} tabIndex={-1}>
        <OfflineNotice />
        {children}
      </main>
      <Toasts />
      <CommandPalette />
    </div>
  )
}

function Brand(): JSX.Element {
  return (
    <Link to="/" class={classes.brand}>
      <img src={serviceUrl('/sluice.svg').href} alt="" />
      Sluice
    </Link>
  )
}

function Rail({ items, isOpen }: { items: readonly NavigationItem[]; isOpen: boolean }): JSX.Element {
  const groups = [...new Set(items.map(({ group }) => group))]
  return (
    <aside class={classes.rail} data-open={isOpen}>
      <Brand />
      <button type="button" class={classes.find} onClick={openPalette}>
        <Icon name="search" />
        Find
        <kbd>Ctrl K</kbd>
      </button>
      <nav aria-label="Pages">
        {groups.map((group) => (
          <div key={group} class={classes.group}>
            <div class={classes.groupName}>{group}</div>
            <ul>
              {items
                .filter((item) => item.group === group)
                .map(({ path, label, icon, note }) => (
                  <li key={path}>
                    <Link to={path} class={classes.navLink} isNavigation>
                      <Icon name={icon} />
                      {label}
                      {note === undefined ? null : <span class={classes.navCount}>{note()}</span>}
                    </Link>
                  </li>
                ))}
            </ul>
          </div>
        ))}
      </nav>
      <Account />
    </aside>
  )
}

function Account(): JSX.Element {
  const { value } = session
  const choice = theme.value
  return (
    <div class={classes.account}>
      {typeof value === 'object' ? (
        <div class={classes.accountName} title={`${value.name}, ${value.keyId}`}>
          {value.name}
          <small>{currentRole()}</small>
        </div>
      ) : (
        <Link to="/sign-in" class={classes.accountName}>
          Sign in
        </Link>
      )}
      <Button
        kind="quiet"
        icon={THEME_ICONS[choice]}
        label={`Theme: ${choice}`}
        onClick={() => setTheme(NEXT_THEME[choice])}
      />
      {typeof value === 'object' ? (
        <Button kind="quiet" icon="signOut" label="Sign out" onClick={() => void signOut().catch(showFailure)} />
      ) : null}
    </div>
  )
}

function pageCommands(items: readonly NavigationItem[]) {
  return items.map(({ path, label, icon, group }) => ({ label, icon, group, run: () => navigate(path) }))
}

function settingCommands() {
  return (['system', 'light', 'dark'] as const).map((choice) => ({
    label: `Theme: ${choice}`,
    icon: THEME_ICONS[choice],
    group: 'Appearance',
    words: 'colour mode',
    run: () => setTheme(choice),
  }))
}
