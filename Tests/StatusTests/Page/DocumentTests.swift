import Base
import Crypto
import Telemetry
import Testing

@testable import Status

@Suite("The document of the status page")
struct DocumentTests {
    private static let pages = [
        Example.quiet(), Example.everywhere("text"),
        Example.everywhere("text", withUser: true), Example.list("text"),
    ].map(\.html)

    @Test("has a policy that fits its only style and its only script")
    func policy() {
        let policy = StatusPage.contentSecurityPolicy
        #expect(policy.hasPrefix("default-src 'none'; "))
        for page in Self.pages {
            let styles = page.matches(of: /(?s)<style>(.*?)<\/style>/).map(\.1)
            let scripts = page.matches(of: /(?s)<script type="module">(.*?)<\/script>/).map(\.1)
            #expect(styles.count == 1 && scripts.count == 1)
            #expect(policy.contains("style-src '\(Self.hash(styles[0]))';"))
            #expect(policy.contains("script-src '\(Self.hash(scripts[0]))';"))
        }
    }

    @Test("hashes as the specification of the policy shows it")
    func knownHash() {
        // https://www.w3.org/TR/CSP3/#example-8a6b2f7e has the hash of this script.
        #expect(StatusPage.hash("alert('Hello, world.');") == "sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng=")
    }

    private static func hash(_ text: Substring) -> String {
        let encoded = Base64URL.encode(Digest.sha256(Array(text.utf8)))
        return "sha256-" + encoded.replacing("-", with: "+").replacing("_", with: "/") + "="
    }

    @Test("has neither style attributes, nor event handlers, nor addresses elsewhere")
    func attributes() {
        for page in Self.pages {
            let markup = Markup(page)
            for (name, _) in markup.attributes { #expect(name != "style" && !name.hasPrefix("on")) }
            for address in markup.values(of: "href") + markup.values(of: "action") + markup.values(of: "src") {
                let isLocal =
                    ["./", "users", "grants"].contains(address)
                    || ["runbook#", "users?grant=", "users?connections-of=", "grants?"]
                        .contains { address.hasPrefix($0) }
                #expect(isLocal || address.hasPrefix("data:image/svg+xml,"))
            }
            #expect(markup.unbalanced.isEmpty)
        }
    }

    @Test("has one first heading, a heading for each section, and a label for the input")
    func structure() {
        for page in Self.pages {
            let markup = Markup(page)
            #expect(markup.count(of: "h1") == 1 && markup.count(of: "main") == 1)
            #expect(markup.count(of: "section") == markup.count(of: "h2"))
            #expect(markup.count(of: "table") == markup.count(of: "caption"))
            #expect(markup.values(of: "for").first == "user")
            let ids = markup.values(of: "id")
            #expect(Set(ids).count == ids.count, "an id would have two elements")
            for label in markup.values(of: "aria-labelledby") + markup.values(of: "aria-describedby") {
                #expect(ids.contains(label))
            }
            #expect(page.hasPrefix("<!DOCTYPE html>\n<html lang=\"en\">"))
            #expect(page.contains(#"content="width=device-width, initial-scale=1""#))
        }
    }

    @Test("begins its title with the verdict")
    func title() {
        var contents = Example.quiet()
        #expect(contents.html.contains("<title>All is well – refresh-worker</title>"))
        contents.findings = Example.findings(client: "a", text: "b")
        #expect(contents.html.contains(/<title>Users are without tokens now: [0-9]+ concerns – refresh-worker</))
        contents.findings = nil
        #expect(contents.html.contains("<title>State unknown – refresh-worker</title>"))
    }

    @Test("updates itself only while it shows counts")
    func updates() {
        #expect(Example.quiet().html.contains("<main data-at=\"\(Example.now.iso8601Seconds)\">"))
        let lookup = Example.everywhere("text", withUser: true).html
        #expect(!lookup.contains("<main data-at"))
        #expect(lookup.contains("does not update itself"))
    }
}
