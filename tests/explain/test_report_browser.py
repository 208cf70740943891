"""The report in a browser, from disk: pictures, links between filters and nodes, no errors."""

import shutil

import pytest

from kergnn.explain.report import write_report

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.wait import WebDriverWait  # noqa: E402

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")

pytestmark = [
    pytest.mark.skipif(
        not (BROWSER and DRIVER),
        reason="no browser: install chromium and chromium-driver (Debian's names)",
    ),
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    profile = tmp_path_factory.mktemp("profile")
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--disable-gpu",
        "--window-size=1500,1200",
        f"--user-data-dir={profile}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(executable_path=DRIVER)
    driver = webdriver.Chrome(options=options, service=service)
    driver.execute_cdp_cmd("Emulation.setFocusEmulationEnabled", {"enabled": True})
    yield driver
    driver.quit()


@pytest.fixture
def page(browser, mutag_subject, tmp_path):
    path = write_report(mutag_subject, tmp_path)
    browser.get_log("browser")
    browser.get(path.as_uri())
    yield browser
    assert [entry["message"] for entry in browser.get_log("browser")] == []


def find(page, selector):
    return page.find_elements(By.CSS_SELECTOR, selector)


def point_at(page, element, then):
    """Scroll as a reader would, and move the pointer, until a selector finds something.

    On a busy machine the page may still be moving when the pointer gets there.
    """

    def answered(_):
        page.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
        ActionChains(page).move_to_element(element).perform()
        return find(page, then)

    return WebDriverWait(page, 60).until(answered)


def test_pictures_are_drawn(page):
    assert page.current_url.startswith("file://")
    assert "MUTAG" in page.title
    for selector in (".filter > svg", ".panel svg", ".chart svg"):
        pictures = find(page, selector)
        assert pictures
        for picture in pictures:
            assert picture.size["width"] > 50
            assert picture.size["height"] > 20
    assert find(page, ".panel svg .node circle.base")[0].size["width"] > 5


def test_pointing_at_a_filter_lights_up_the_nodes_that_respond(page):
    assert find(page, ".node.lit") == []
    first, second = find(page, ".filter")[:2]
    lit = {node.id for node in point_at(page, first, ".node.lit")}
    halo = find(page, ".node.lit .halo")[0]
    assert float(halo.value_of_css_property("opacity")) >= 0.5
    links = page.execute_script("return JSON.parse(document.getElementById('links').textContent)")
    layer = int(first.get_dom_attribute("data-layer"))
    number = int(first.get_dom_attribute("data-filter"))
    expected = sum(
        row[number] >= 50 for g in links["graphs"].values() for row in g["response"][layer]
    )
    assert len(lit) == 4 * expected  # in every panel
    assert "Filter 1." in page.find_element(By.ID, "inspector").text

    point_at(page, second, f"#{second.get_dom_attribute('id')}.on")
    assert len(find(page, ".filter.on")) == 1
    point_at(page, page.find_element(By.TAG_NAME, "h1"), "body:not(:has(.node.lit))")


def test_the_keyboard_does_what_the_pointer_does(page):
    card = find(page, ".filter")[0]
    page.execute_script("arguments[0].focus()", card)
    assert find(page, ".node.lit")
    card.send_keys(Keys.ENTER)  # keeps it
    page.execute_script("arguments[0].blur()", card)
    assert find(page, ".node.lit")
    ActionChains(page).send_keys(Keys.ESCAPE).perform()
    assert find(page, ".node.lit") == []

    node = find(page, "#g0 .input .node[tabindex='0']")[0]
    page.execute_script("arguments[0].focus()", node)
    assert "Node 0" in page.find_element(By.ID, "inspector").text
    ActionChains(page).send_keys(Keys.ARROW_RIGHT).perform()
    assert "Node 1" in page.find_element(By.ID, "inspector").text


def test_pointing_at_a_node_shows_its_ego_graph_and_filters(page):
    circle = find(page, "#g1 .input .node .base")[2]
    marked = point_at(page, circle, "#g1 .input .node.ego")
    links = page.execute_script("return JSON.parse(document.getElementById('links').textContent)")
    members = links["graphs"]["g1"]["ego"][2]
    assert sorted(int(n.get_dom_attribute("data-n")) for n in marked) == sorted(members)
    assert len(find(page, ".filter.match")) == 6
    pictures = find(page, "#inspector svg")
    assert len(pictures) == 6
    assert all(picture.size["width"] > 30 for picture in pictures)


def test_colours_can_be_changed_to_contributions(page):
    def shown(selector):
        return page.find_element(By.CSS_SELECTOR, selector).value_of_css_property("display")

    assert shown("#g0 .input .tone.contribution") == "none"
    page.find_element(By.CSS_SELECTOR, "button[data-mode='contribution']").click()
    assert shown("#g0 .input .tone.contribution") != "none"
    assert shown("#g0 .input .tone.value") == "none"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_stands_out_in_both_themes(page, theme):
    feature = {"name": "prefers-color-scheme", "value": theme}
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    found = page.execute_script(
        "return [getComputedStyle(document.body).backgroundColor,"
        "getComputedStyle(document.querySelector('.about')).color]"
    )
    back, ink = (luminance(color) for color in found)
    assert (back > 0.5) == (theme == "light")
    assert (max(back, ink) + 0.05) / (min(back, ink) + 0.05) >= 4.5


def luminance(color):
    parts = [int(p) / 255 for p in color.split("(")[1].rstrip(")").split(",")[:3]]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
