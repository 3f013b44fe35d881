/** VitePress's own theme, in which blocks of Mermaid are pictures. Where no script runs they stay text. */
import { useData, withBase } from 'vitepress'
import DefaultTheme from 'vitepress/theme'
import './theme.css'
import { h, nextTick, onMounted, watch } from 'vue'

let loading

/** The library is a script of the site's own, which only pages with a picture load. */
function loaded() {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement('script')
    script.src = withBase('/mermaid.js')
    script.onload = () => resolve(globalThis.mermaid)
    script.onerror = () => reject(new Error(`${script.src} cannot be loaded`))
    document.head.append(script)
  })
  return loading
}

async function draw(isDark) {
  const blocks = [...document.querySelectorAll('div.language-mermaid')]
  if (blocks.length === 0) return
  const mermaid = await loaded()
  mermaid.initialize({ startOnLoad: false, theme: isDark ? 'dark' : 'neutral' })
  for (const [i, block] of blocks.entries()) {
    const { svg } = await mermaid.render(`diagram-${i}`, block.querySelector('pre code').textContent)
    const figure = block.querySelector('figure') ?? document.createElement('figure')
    figure.innerHTML = svg
    block.append(figure)
    block.classList.add('drawn')
  }
}

const Layout = {
  setup() {
    const { isDark, page } = useData()
    onMounted(() => draw(isDark.value))
    watch([isDark, () => page.value.relativePath], () => nextTick(() => draw(isDark.value)))
    return () => h(DefaultTheme.Layout)
  },
}

export default { extends: DefaultTheme, Layout }
