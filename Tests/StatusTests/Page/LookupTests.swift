import Base
import Crypto
import Status
import Storage
import Testing

@testable import Scheduler

@Suite("A user on the status page")
struct LookupTests {
    private static func page(_ lookup: StatusPage.Lookup?) -> String {
        var contents = Example.quiet()
        contents.lookup = lookup
        return contents.html.replacing(/<[^>]*>/) { $0.0.hasPrefix("</d") ? " " : "" }
    }

    @Test("is shown with its state, its reason and its times")
    func found() {
        let page = Self.page(.found(Example.grant(user: "ada"), history: []))
        #expect(page.contains("ada"))
        #expect(page.contains("State retrying The last refresh failed; it is tried again. Since "))
        #expect(page.contains("Reason endpoint_failing"))
        #expect(page.contains("(in 1 min 5 s)"))
        #expect(page.contains("Failures 4 in a row, since "))
        #expect(page.contains("Refresh token none"))
        #expect(page.contains("Grant 123456789abcdef0"))
        #expect(!page.contains("owner@example.com") && !page.contains("The Owner"), "an operator has the user's id")
    }

    @Test("has the newest events of the history, and says if there are more")
    func history() {
        let page = Self.page(.found(Example.grant(user: "ada"), history: (0..<101).map(Example.event)))
        #expect(page.contains("reason_0") && page.contains("reason_19") && !page.contains("reason_20"))
        #expect(page.contains("The last 20 of 101 events. All of them: refresh-worker grants history"))
        #expect(page.contains("retrying → reauth_required"))
        let short = Self.page(.found(Example.grant(user: "ada"), history: [Example.event(0)]))
        #expect(short.contains("The history of the grant.") && !short.contains("101 events"))
    }

    @Test("has tokens that are valid until a time to come, or that expired", arguments: [60, -125])
    func tokens(seconds: Int) throws {
        let token = Grant.AccessToken(
            sealed: try SealedSecret(bytes: [2, 8] + Array("00000001".utf8) + [UInt8](repeating: 7, count: 40)),
            obtainedAt: Example.now,
            expiresAt: Example.now + .seconds(seconds)
        )
        let grant = Example.grant(user: "ada", accessToken: token)
        let page = Self.page(.found(grant, history: []))
        #expect(page.contains("stored, valid until 2027-01-15T08:01:00Z (in 1 min)") == (seconds > 0))
        #expect(page.contains("stored, expired 2027-01-15T07:57:55Z (2 min 5 s ago)") == (seconds < 0))
    }

    @Test("waits while nothing is sent for the client, although the grant's last refresh succeeded")
    func waiting() throws {
        let token = Grant.AccessToken(
            sealed: try SealedSecret(bytes: [2, 8] + Array("00000001".utf8) + [UInt8](repeating: 7, count: 40)),
            obtainedAt: Example.now - .seconds(3600),
            expiresAt: Example.now - .seconds(1)
        )
        var contents = Example.quiet()
        contents.lookup = .found(Example.grant(user: "ada", client: Example.clientID, accessToken: token), history: [])
        var client = Example.client(Example.clientID, .open("endpoint_failing"), ceiling: 2)
        client.nextProbe = .seconds(5)
        client.failures = [
            ClientFailure(
                code: "http_503",
                status: 503,
                since: Example.now - .seconds(8),
                lastAt: Example.now,
                count: 9
            )
        ]
        contents.clients = [client]
        let page = contents.html
        let reason = "HTTP 503 since 2027-01-15T07:59:52Z, next try in 5 s"
        #expect(page.contains("It waits: nothing is sent for its client (\(reason))."))
        #expect(page.contains(#"<span class="label bad">expired</span>"#))
        contents.clients[0].breaker = .closed(consecutiveFailures: 0, grants: [])
        #expect(!contents.html.contains("It waits"))
    }

    @Test("is shown with its connection, and with the labels of it that there are")
    func connection() throws {
        let work = try #require(ConnectionID("work"))
        var grant = Example.grant(user: "ada", connection: work)
        #expect(Self.page(.found(grant, history: [])).contains("Connection work State retrying"))
        grant.labels = try #require(ConnectionLabels(["tenant": "acme", "feature": "<b>"]))
        let page = Self.page(.found(grant, history: []))
        #expect(page.contains("Connection work Labels feature=&lt;b&gt; tenant=acme"))
        #expect(Self.page(.found(Example.grant(user: "ada"), history: [])).contains("Connection default State"))
    }

    @Test("has a column for connections in a list with one that is not the default one")
    func connectionColumn() throws {
        let work = try #require(ConnectionID("work"))
        let grants = [Example.grant(user: "ada"), Example.grant(user: "ada", connection: work)]
        var contents = Example.quiet()
        contents.lookup = .list(grants, filter: GrantFilter(), next: nil, count: 2)
        #expect(contents.html.contains(#"data-label="Connection"><code>default</code>"#))
        #expect(contents.html.contains(#"data-label="Connection"><code>work</code>"#))
        contents.lookup = .list([grants[0]], filter: GrantFilter(), next: nil, count: 2)
        #expect(!contents.html.contains("Connection"))
    }

    @Test("has a caption in a list without a filter that says whose grants it has")
    func captions() throws {
        let grants = [Example.grant(user: "ada"), Example.grant(user: "bob")]
        let several = Self.page(.list(grants, filter: nil, next: nil, count: 2))
        #expect(several.contains("2 grants of 2 users who have this e-mail address."))
        let own = [grants[0], Example.grant(user: "ada", connection: try #require(ConnectionID("work")))]
        #expect(Self.page(.list(own, filter: nil, next: nil, count: 2)).contains("2 connections of the user."))
    }

    @Test("has the number of grants in a list with a filter, and says in which order they are")
    func counts() {
        let filter = GrantFilter(state: .retrying)
        let grants = [Example.grant(user: "ada"), Example.grant(user: "bob")]
        func caption(_ grants: [Grant], count: Int?) -> String {
            Self.page(.list(grants, filter: filter, next: nil, count: count))
        }
        #expect(caption([grants[0]], count: 1).contains("1 grant, the longest in their state first."))
        #expect(caption(grants, count: 1_234).contains("1,234 grants, 2 of them here, the longest in their state"))
        #expect(caption(grants, count: nil).contains("In the order of their ids: too many to sort."))
    }

    @Test("keeps the text that was looked up, and has an address with the id of a grant")
    func address() throws {
        var contents = Example.quiet()
        func field() throws -> String {
            let field = try #require(contents.html.firstMatch(of: /<input id="user"[^>]*>/)?.0)
            return field.firstMatch(of: /\svalue="([^"]*)"/).map { String($0.1) } ?? ""
        }
        func link() -> String? { contents.html.firstMatch(of: /<a id="address" href="([^"]*)"/).map { String($0.1) } }
        #expect(try field().isEmpty && link() == nil)
        let grant = Example.grant(user: "ada")
        contents.lookup = .found(grant, history: [])
        contents.lookedUp = "ada@example.com"
        #expect(try field() == "ada@example.com" && link() == "users?grant=\(grant.id)")
        contents.lookedUp = nil
        #expect(try field() == "ada", "a link led here")
        contents.lookup = .unknownUser("nobody")
        #expect(try field() == "nobody" && link() == nil)
        contents.lookup = .unknownUser("a\u{202e}b")
        #expect(try field().isEmpty, "an escaped character would be another text")
        let work = Example.grant(user: "ada", connection: try #require(ConnectionID("work")))
        contents.lookup = .list([grant, work], filter: nil, next: nil, count: 2)
        #expect(try field() == "ada" && link() == "users?connections-of=\(grant.id)")
        contents.lookup = .list([grant, Example.grant(user: "bob")], filter: nil, next: nil, count: 2)
        contents.lookedUp = "both@example.com"
        #expect(try field() == "both@example.com" && link() == nil)
        contents.lookup = .list([grant], filter: GrantFilter(), next: nil, count: 1)
        #expect(try field().isEmpty && link() == nil, "the address of a list with a filter is its own")
    }

    @Test("keeps the label that a list is limited to, for the next page too")
    func labelFilter() throws {
        let label = try #require(GrantFilter.Label(#"tenant="acme"=x"#))
        var contents = Example.quiet()
        contents.lookup = .list([], filter: GrantFilter(label: label), next: "0123456789abcdef", count: nil)
        let form = try #require(contents.html.firstMatch(of: /<form action="grants".*?<\/form>/)?.0)
        #expect(form.contains(#"name="label" type="text" value="tenant=&quot;acme&quot;=x""#))
        #expect(form.contains(#"name="after" value="0123456789abcdef""#))
    }

    @Test("may be unknown")
    func unknown() {
        #expect(Self.page(.unknownUser("ada")).contains("No grant of the user ada is stored."))
        #expect(!Self.page(nil).contains("No grant of the user"))
    }
}
