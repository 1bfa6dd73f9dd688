import { render } from 'preact'
import './ui/theme/tokens.css'
import './ui/theme/base.css'
import { startSession } from './api/session.ts'
import { App } from './app.tsx'
import { startRouter } from './ui/navigation/router.ts'
import { startTheme } from './ui/theme/theme.ts'

startTheme()
// The address of the page changes, and with it what a relative link means: browsers would look for the icon elsewhere.
const icon = document.querySelector<HTMLLinkElement>('link[rel="icon"]')
if (icon !== null) icon.setAttribute('href', icon.href)
startRouter()
void startSession()

const root = document.getElementById('app')
if (root !== null) render(<App />, root)
