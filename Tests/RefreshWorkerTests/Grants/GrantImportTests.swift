import Foundation
import TestSupport
import Testing

@testable import Base
@testable import Crypto
@testable import Records
@testable import RefreshWorker
@testable import Storage

@Suite("Importing grants", .timeLimit(.minutes(10)))
struct GrantImportTests {
    private let fixture: ImportFixture

    init() throws {
        fixture = try ImportFixture()
    }

    @Test("A dry run without a database finds no grant stored, and checks the input")
    func dryRunWithoutDatabase() async throws {
        let writer = ImportedGrantWriter(
            store: nil,
            vault: fixture.vault,
            time: fixture.time,
            random: SystemRandom(),
            existing: .keep,
            isDryRun: true
        )
        let text = [try line("a"), "rubbish", try line("b"), try line("a")].joined(separator: "\n")
        let tally = try await fixture.importText(text, writer: writer)
        #expect(tally.stored == 3 && tally.bad == 1)
    }

    @Test("stores the valid lines and reports the invalid ones with their numbers")
    func badLines() async throws {
        let text = [
            try line("a"), "rubbish 1//SECRET", try line("b", ["refresh_token": "SE CRET"]), "", try line("c"),
            "{\"user_id\":\"d\",", try line("e"), try line(String(repeating: "x", count: 1_000_000)),
            try line(String(repeating: "y", count: 1_100_000)), try line("f"),
        ].joined(separator: "\n")
        for pieces in [1 << 16, 1000] {
            let tally = try await fixture.importText(text, replace: true, pieces: pieces)
            #expect(tally.stored + tally.replaced == 4)
            #expect(tally.bad == 5)
            #expect(
                fixture.reports.map { $0.prefix { $0 != ":" } } == ["line 2", "line 3", "line 6", "line 8", "line 9"]
            )
            #expect(fixture.reports[3] == "line 8: user_id has 1000000 bytes; at most 1024 are allowed")
            #expect(fixture.reports[4] == "line 9: longer than 1048576 bytes; skipped")
            #expect(!fixture.reports.joined().contains("CRET"))
        }
        for user in ["a", "c", "e", "f"] {
            #expect(try await fixture.refreshToken(user) == "1//refresh-\(user)")
        }
        #expect(try await fixture.store.grants(after: nil, in: nil, atMost: 100).count == 4)
    }

    @Test("keeps stored grants, and reports each one")
    func keeps() async throws {
        try await fixture.importText(try line("a", ["refresh_token": "1//first"]))
        let before = try await fixture.grant("a")
        let hostile = "a\u{202e}" + String(repeating: "n", count: 500)
        try await fixture.importText(try line(hostile))
        let text = try line("a", ["refresh_token": "1//second"]) + "\n" + line(hostile) + "\n" + line("b")
        let tally = try await fixture.importText(text)
        #expect(tally == ImportTally(stored: 1, replaced: 0, kept: 2, bad: 0))
        #expect(try await fixture.grant("a") == before)
        #expect(fixture.reports.first == "line 1: user 'a' is stored already: kept")
        #expect(fixture.reports.last?.contains("'a\\u{202e}nnn") == true)
        #expect(fixture.reports.allSatisfy { $0.utf8.count < 200 })
    }

    @Test("does not bring back a token that its user ended years ago, which another user of the account keeps")
    func endedYearsAgo() async throws {
        let shared = ["refresh_token": "1//shared", "google_user_id": "1"]
        let lines = try ["a", "b"].map { try line($0, shared) }.joined(separator: "\n")
        try await fixture.importText(lines)
        let now = fixture.time.now
        _ = try await fixture.store.transact { try GrantDisconnection.end(grantOfUser: "a", in: $0, at: now) }
        let ended = try await fixture.grant("a")
        fixture.time.advance(by: .seconds(5 * 365 * 86_400))
        while try await fixture.store.removeExpired(at: fixture.time.now).mayHaveMore {}
        #expect(try await fixture.importText(lines, replace: true) == ImportTally(replaced: 1, kept: 1))
        #expect(try await fixture.grant("a") == ended)
    }

    @Test("does not store the grant of a deleted user, and says until when")
    func deletedUser() async throws {
        try await fixture.importText(try line("a"))
        let now = fixture.time.now
        _ = try await fixture.store.transact { try AccountDeletion.delete(user: "a", in: $0, at: now) }
        let tally = try await fixture.importText(try line("a"), replace: true)
        #expect(tally == ImportTally(deletedHere: 1), "that is no bad record")
        let end = "was deleted: not stored until every token that names the user has expired"
        #expect(fixture.reports == ["line 1: user 'a' \(end)"])
    }

    @Test("stores each connection of a user that lines name, but no account as two of them")
    func connections() async throws {
        let lines = [
            try line("a", ["google_user_id": "1"]),
            try line(
                "a",
                [
                    "connection": "work", "refresh_token": "1//w", "google_user_id": "2",
                    "labels": ["tenant": "acme"] as [String: String],
                ]
            ),
            try line("a", ["connection": "third", "refresh_token": "1//t", "google_user_id": "2"]),
            try line("b", ["connection": "work", "google_user_id": "2"]),
        ]
        let tally = try await fixture.importText(lines.joined(separator: "\n"))
        #expect(tally == ImportTally(stored: 3, kept: 1))
        let report = "line 3: user 'a' (connection third) has this Google account as the connection work: not stored"
        #expect(fixture.reports == [report])
        let grants = try await fixture.store.grants(ofUser: "a")
        #expect(grants.map(\.connection.description) == ["default", "work"])
        #expect(grants.map(\.labels.pairs) == [[:], ["tenant": "acme"]])
        #expect(try await fixture.store.grants(ofUser: "b").map(\.connection.description) == ["work"])
        #expect(try fixture.vault.openRefreshToken(of: grants[1])?.reveal() == "1//w")
        // The account of the default connection, for another one.
        let text = try line("a", ["connection": "work", "refresh_token": "1//x", "google_user_id": "1"])
        #expect(try await fixture.importText(text, replace: true) == ImportTally(kept: 1))
        #expect(try await fixture.store.grants(ofUser: "a") == grants)
    }

    @Test("an account is free for another connection once a replacing line says that it has left one")
    func leftAccount() async throws {
        let stored = ["connection": "work", "google_user_id": "2"]
        let lines = try [line("a", ["google_user_id": "1"]), line("a", stored)]
        try await fixture.importText(lines.joined(separator: "\n"))
        let left = try line("a", ["connection": "work", "state": "disconnected", "reason": "account_moved"])
        #expect(try await fixture.importText(left, replace: true) == ImportTally(replaced: 1))
        let text = try line("a", ["refresh_token": "1//x", "google_user_id": "2"])
        #expect(try await fixture.importText(text, replace: true) == ImportTally(replaced: 1))
        let grants = try await fixture.store.grants(ofUser: "a")
        #expect(grants.map(\.owner.googleUserID) == ["2", nil])
        #expect(grants.map(\.reason) == [.none, .accountMoved])
    }

    @Test("names the line and the user of a bad record, if the user can be read")
    func namesUsers() async throws {
        let text = #"{"user_id": "a"}"# + "\n" + #"{"refresh_token": "1//a"}"#
        #expect(try await fixture.importText(text).bad == 2)
        #expect(
            fixture.reports == [
                "line 1: user 'a': refresh_token and access_token are both missing", "line 2: user_id is missing",
            ]
        )
    }

    @Test("stores the first of two lines of one user, and the last with --replace")
    func duplicates() async throws {
        let lines = try (1...3).map { try line("a", ["refresh_token": "1//r\($0)"]) }.joined(separator: "\n")
        #expect(try await fixture.importText(lines) == ImportTally(stored: 1, replaced: 0, kept: 2, bad: 0))
        #expect(try await fixture.refreshToken("a") == "1//r1")
        let other = lines.replacingOccurrences(of: "\"a\"", with: "\"b\"")
        #expect(
            try await fixture.importText(other, replace: true) == ImportTally(stored: 1, replaced: 2, kept: 0, bad: 0)
        )
        #expect(try await fixture.refreshToken("b") == "1//r3")
        #expect(try await fixture.grant("b").generation == 3)
    }

    @Test("reads a file that is one secret, an array, or output of the AWS client, without a line for each")
    func shapes() async throws {
        let one = "{\n  \"user_id\": \"one\",\n  \"refresh_token\": \"1//one\"\n}\n"
        let array =
            "[\n  {\n    \"user_id\": \"two\",\n    \"refresh_token\": \"1//two\"\n  },\n  \(try line("three"))]"
        let aws = """
            {
                "ARN": "arn:aws:secretsmanager:x",
                "Name": "gmail/user/four",
                "SecretString": "{\\"access_token\\": \\"ya29.x\\", \\"refresh_token\\": \\"1//four\\"}",
                "VersionStages": [
                    "AWSCURRENT"
                ]
            }

            """
        for text in [one, array, aws + aws.replacingOccurrences(of: "four", with: "five")] {
            #expect(try await fixture.importText(text, pieces: 10).bad == 0)
        }
        for user in ["one", "two", "four", "five"] {
            #expect(try await fixture.refreshToken(user) == "1//\(user)")
        }
        #expect(try await fixture.refreshToken("three") == "1//refresh-three")
    }

    @Test("refreshes a grant without scopes at once, because the answer names them")
    func unknownScopes() async throws {
        let lines = [
            try line("unknown", ["scope": nil]), try line("known"),
            try line("lasting", ["scope": nil, "refresh_token": nil]),
        ]
        try await fixture.importText(lines.joined(separator: "\n"))
        #expect(try await fixture.grant("unknown").dueAt == fixture.time.now)
        for user in ["known", "lasting"] {
            let dueAt = try #require(try await fixture.grant(user).dueAt)
            #expect(dueAt > fixture.time.now)
        }
    }

    @Test("leaves the names of users to the backend")
    func names() async throws {
        let now = fixture.time.now
        try await fixture.store.transact { try $0.insert(User(id: "named", createdAt: now, name: "Own")) }
        let text = try ["new", "named"].map { try line($0, ["google_name": "Google"]) }.joined(separator: "\n")
        #expect(try await fixture.importText(text).stored == 2)
        #expect(try await fixture.grant("new").owner.name == "Google")
        #expect(try await fixture.store.user("new") == User(id: "new", createdAt: now))
        #expect(try await fixture.store.user("named")?.name == "Own")
        var users = UserImport(store: fixture.store, replacesExisting: false, time: fixture.time) { _ in }
        try await users.feed(Array(#"{"user_id":"new","name":"Ann","created_on":"2025-06-01"}"#.utf8))
        try await users.finish()
        #expect(users.tally == ImportTally(stored: 1))
        #expect(try await fixture.store.user("new")?.name == "Ann")
    }

    @Test("stores more than a batch, all due within their tokens' lifetimes and at different times")
    func batches() async throws {
        let count = GrantImport.batchSize * 2 + 50
        let text = try (0..<count).map { try line("user \($0)") }.joined(separator: "\n")
        #expect(try await fixture.importText(text).stored == count)
        let grants = try await fixture.store.grants(after: nil, in: nil, atMost: count + 1)
        #expect(grants.count == count)
        let now = fixture.time.now
        let due = grants.compactMap(\.dueAt)
        #expect(due.allSatisfy { $0 > now && $0 <= now + .seconds(3300) })
        #expect(Set(due).count > count / 2)
    }

    @Test("makes a grant with an expired token due immediately")
    func expired() async throws {
        try await fixture.importText(try line("a", ["expires_at": "2020-01-01T00:00:00.000001", "refresh_token": nil]))
        let grant = try await fixture.grant("a")
        #expect(grant.state == .active)
        #expect(grant.dueAt == fixture.time.now)
        #expect(grant.refreshToken == nil)
    }

    @Test("keeps the state that a grant had", arguments: GrantState.allCases)
    func states(state: GrantState) async throws {
        let text = try line("a", ["state": state.rawValue, "reason": "some_code", "since": "2026-03-04T05:06:07.089Z"])
        for replaces in [false, true] {
            try await fixture.importText(text, replace: replaces)
            let grant = try await fixture.grant("a")
            #expect(grant.state == state)
            #expect(grant.reason.rawValue == (state == .active ? "none" : "some_code"))
            #expect(grant.since == Timestamp(iso8601: "2026-03-04T05:06:07.089Z"))
            #expect((grant.dueAt == nil) == state.endsRefreshes)
            // The generation grows with a change to a state that ends calls.
            #expect(grant.generation == (replaces && state.endsRefreshes ? 2 : 1))
            let event = try #require(try await fixture.store.events(of: grant.id, atMost: 1).first)
            #expect(event.kind == .connected)
            #expect(event.to == state)
            #expect(event.generation == grant.generation)
        }
    }

    @Test("drops the tokens of a grant that its user ended")
    func tokensOfEndedGrant() async throws {
        let ended = try line("a", ["state": "disconnected", "reason": "user_request"])
        try await fixture.importText(ended)
        #expect(try await fixture.grant("a").refreshToken == nil)
        try await fixture.importText(try line("b"))
        try await fixture.importText(ended.replacingOccurrences(of: "\"a\"", with: "\"b\""), replace: true)
        let grant = try await fixture.grant("b")
        #expect(grant.refreshToken == nil)
        #expect(grant.accessToken == nil)
        #expect(grant.dueAt == nil)
    }

    @Test("spreads the first probe of suspended grants")
    func suspended() async throws {
        let text = try (0..<40).map { try line("u\($0)", ["state": "suspended"]) }.joined(separator: "\n")
        try await fixture.importText(text)
        let due = try await fixture.store.grants(after: nil, in: .suspended, atMost: 100).compactMap(\.dueAt)
        let now = fixture.time.now
        #expect(Set(due).count == 40)
        #expect(due.allSatisfy { $0 >= now && $0 <= now + .seconds(86_400) })
    }

    @Test("replaces a grant by the rules of a reconnect")
    func replacements() async throws {
        try await fixture.importText(try line("a"))
        // The same refresh token keeps its generation, and its scopes: those in the file are not newer.
        try await fixture.importText(try line("a", ["scope": "openid"]), replace: true)
        #expect(try await fixture.grant("a").generation == 1)
        #expect(try await fixture.grant("a").scope == "openid email")
        // Without a refresh token the stored one stays; the account is the same in other letters.
        let none = try line("a", ["refresh_token": nil, "google_email": "A@EXAMPLE.com"])
        try await fixture.importText(none, replace: true)
        #expect(try await fixture.refreshToken("a") == "1//refresh-a")
        // An unknown account does not count as a switch.
        try await fixture.importText(try line("a", ["refresh_token": nil, "google_email": nil]), replace: true)
        #expect(try await fixture.refreshToken("a") == "1//refresh-a")
        // Another refresh token.
        try await fixture.importText(try line("a", ["refresh_token": "1//new"]), replace: true)
        #expect(try await fixture.refreshToken("a") == "1//new")
        #expect(try await fixture.grant("a").generation == 2)
        // The same token for another client.
        try await fixture.importText(try line("a", ["refresh_token": "1//new", "client_id": "other"]), replace: true)
        #expect(try await fixture.grant("a").clientID == "other")
        #expect(try await fixture.grant("a").generation == 3)
        // Another account without a refresh token: the old account's token is not kept.
        let other = try line("a", ["refresh_token": nil, "google_email": "b@example.com", "access_token": "ya29.b"])
        try await fixture.importText(other, replace: true)
        let grant = try await fixture.grant("a")
        #expect(grant.refreshToken == nil)
        #expect(grant.owner.email == "b@example.com")
        #expect(try fixture.vault.openAccessToken(of: grant)?.reveal() == "ya29.b")
        // The access token is the only token, so the grant is due when it expires.
        #expect(grant.dueAt == grant.accessToken?.expiresAt)
    }

    @Test(
        "leaves a grant that its user ended unchanged, unless the line has a new refresh token",
        arguments: [nil, "1//refresh-a", "1//another"] as [String?],
        [GrantReason.userRequest, .tokenRevoked, .tokensRevoked]
    )
    func endedByUser(refreshToken: String?, reason: GrantReason) async throws {
        try await fixture.importText(try line("a"))
        let now = fixture.time.now
        try await fixture.store.transact { transaction in
            guard var grant = try transaction.grant(ofUser: "a") else { return }
            let events =
                reason == .userRequest
                ? grant.disconnectByRequest(revokes: true, at: now) : grant.disconnectByEvent(reason: reason, at: now)
            try transaction.update(grant)
            for event in events { try transaction.record(event) }
        }
        let ended = try await fixture.grant("a")
        let tally = try await fixture.importText(try line("a", ["refresh_token": refreshToken]), replace: true)
        // The tokens of a security event are deleted immediately, so a new token cannot be compared with them.
        let isNew = refreshToken == "1//another" || (refreshToken != nil && reason != .userRequest)
        if isNew {
            #expect(tally.replaced == 1)
            #expect(try await fixture.grant("a").state == .active)
        } else {
            #expect(tally.kept == 1 && fixture.reports.count == 1)
            #expect(try await fixture.grant("a") == ended)
        }
    }

    @Test("compares the account's ids before its e-mail addresses")
    func accounts() {
        let stored = Grant.Owner(googleUserID: "1", email: "a@x")
        #expect(!stored.isOtherAccount(than: Grant.Owner(googleUserID: "1", email: "b@x")))
        #expect(stored.isOtherAccount(than: Grant.Owner(googleUserID: "2", email: "a@x")))
        #expect(stored.isOtherAccount(than: Grant.Owner(email: "b@x")))
        #expect(!stored.isOtherAccount(than: Grant.Owner(email: "A@X")))
        #expect(!stored.isOtherAccount(than: Grant.Owner()))
    }

    @Test("prepares again if another process has changed the grant since")
    func changedSinceRead() async throws {
        try await fixture.importText(try line("a"))
        let stored = try await fixture.grant("a")
        let reconnection = Reconnection(
            stored: stored,
            incoming: IncomingTokens(clientID: stored.clientID),
            replacesRefreshToken: false,
            discardsStored: false
        )
        #expect(reconnection.isBased(on: stored))
        var rotated = stored
        _ = rotated.rotate(to: stored.refreshToken, at: fixture.time.now)
        #expect(!reconnection.isBased(on: rotated))
    }

    @Test(
        "refuses a bound token whose key the ring lacks, and stores the others",
        arguments: [
            ("0000000f", "the refresh token is bound to key 0000000f, which the key ring lacks: "),
            ("key", "binding_key is not the eight digits of a key's id"),
        ]
    )
    func missingBindingKey(key: String, problem: String) async throws {
        let lines = [try line("a", ["binding_key": key]), try line("b")]
        let tally = try await fixture.importText(lines.joined(separator: "\n"))
        #expect(tally.stored == 1 && tally.bad == 1)
        #expect(fixture.reports.contains { $0.contains(problem) })
        #expect(try await fixture.grant("b").refreshToken?.bindingKeyID == nil)
    }

    @Test("refuses a bound token whose key cannot be recorded, because the ring lacks a key of other workers")
    func unrecordableBindingKey() async throws {
        let other = try RingKey.random()
        try await fixture.store.recordKey(other.id, of: KeyRing(keys: [other]))
        let text = try line("a", ["binding_key": "0000000b"])
        let error = await #expect(throws: StoreError.self) { try await fixture.importText(text) }
        #expect(error?.code == .refused)
        #expect(error?.description.contains("0000000b could not be recorded") == true)
        #expect(try await fixture.store.grant(ofUser: "a") == nil)
        #expect(try await fixture.store.recordedKeyIDs() == [other.id])
    }

    @Test("keeps the key of a stored token that comes again without it, and takes one that comes with it")
    func bindingKeyStays() async throws {
        try await fixture.importText(try line("a", ["binding_key": "0000000b"]))
        try await fixture.importText(try line("a"), replace: true)
        let key = KeyID.named("0000000b")
        #expect(try await fixture.grant("a").refreshToken?.bindingKeyID == key)
        try await fixture.importText(try line("b"))
        try await fixture.importText(try line("b", ["binding_key": "0000000b"]), replace: true)
        #expect(try await fixture.grant("b").refreshToken?.bindingKeyID == key)
        let recorded = try await fixture.store.recordedKeyIDs()
        #expect(recorded.contains(key), "no ring that lacks the key is taken for complete")
    }

    @Test("reads back every member that an export wrote")
    func roundTrip() async throws {
        let lines = [
            try line("plain", ["expires_at": "2027-01-15T08:10:00.250", "created_at": "2027-01-15T07:10:00.25"]),
            try line("no refresh", ["refresh_token": nil]),
            try line("no access", ["access_token": nil, "google_email": nil, "scope": nil]),
            try line("dead", ["state": "disconnected", "reason": "invalid_grant", "since": 1_700_000_000]),
            try line("ended", ["state": "disconnected", "reason": "user_request"]),
            try line("blocked", ["state": "suspended", "reason": "access_denied", "client_id": "9-x"]),
            try line("bound", ["binding_key": "0000000b"]),
            try line(
                "every \"field\" é\u{1f600}",
                [
                    "google_user_id": "123", "google_name": "N\u{7}\u{202e}\n", "google_verified_email": false,
                    "refresh_token_expires_at": "2027-02-01T00:00:00Z", "token_type": "other",
                ]
            ),
        ]
        #expect(try await fixture.importText(lines.joined(separator: "\n")).stored == lines.count)
        let exported = try await fixture.export()
        #expect(exported.utf8.count { $0 == UInt8(ascii: "\n") } == lines.count)

        let other = try ImportFixture()
        other.clientIDs = []
        #expect(try await other.importText(exported).stored == lines.count)
        func sorted(_ text: String) throws -> [JSONValue] {
            try text.split(separator: "\n").sorted().map { try JSONValue.parse($0.utf8) }
        }
        #expect(try sorted(try await other.export()) == sorted(exported))
        // The same import over the stored grants, with --replace.
        #expect(try await other.importText(exported, replace: true).replaced == lines.count)
        #expect(try sorted(try await other.export()) == sorted(exported))
    }
}
