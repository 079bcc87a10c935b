/// The runbook as a page, to whose sections the status page and the alerts of Prometheus link.
extension StatusPage {
    package static let runbook: String = {
        let document = element("html", ["lang": "en"]) {
            element("head") {
                HTML.tag("meta", ["charset": "utf-8"])
                HTML.tag("meta", ["name": "viewport", "content": "width=device-width, initial-scale=1"])
                element("title") { "Runbook – refresh-worker" }
                element("style") { HTML.constant(style) }
            }
            element("body") {
                element("main") { HTML(document: String(decoding: PackageResources.runbook_md, as: UTF8.self)) }
            }
        }
        return (HTML.constant("<!DOCTYPE html>\n") + document).markup
    }()
}
