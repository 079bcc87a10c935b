import Crypto
import TestSupport
import Testing

@testable import Base
@testable import Records
@testable import RefreshWorker
@testable import Storage

@Suite("Importing from AWS Secrets Manager", .timeLimit(.minutes(10)))
struct SecretsManagerImportTests {
    private let fixture: SecretsManagerFixture

    init() throws {
        fixture = try SecretsManagerFixture()
    }

    private func put(
        _ user: String,
        _ changes: [String: (any Sendable)?] = [:],
        storedAt: Double = 1_799_999_000
    ) throws {
        fixture.put("gmail/user/\(user)", try secretText(user, changes), storedAt: storedAt)
    }

    @Test("reads every secret, from the output of either command")
    func pages() async throws {
        for number in 0..<250 { try put("u\(number)") }
        #expect(try await fixture.runImport().tally == ImportTally(stored: 250))
        var one = JSONLine()
        one.field("Name", "gmail/user/one")
        one.field("SecretString", try secretText("one"))
        one.field("CreatedDate", "2026-12-31T23:59:59.123000+01:00")
        #expect(try await fixture.runImport(input: one.text).tally == ImportTally(stored: 1))
        let other = try await fixture.runImport(input: #"{"user_id": "a", "refresh_token": "1//a"}"#)
        #expect(other.tally.read == 1 && other.tally.bad == 1)
        #expect(
            fixture.reports == [
                "line 1: not the output of aws secretsmanager batch-get-secret-value or get-secret-value"
            ]
        )
    }

    @Test("says that more pages follow, instead of taking the first one for all")
    func firstPage() async throws {
        let page = #"{"SecretValues": [], "Errors": [], "NextToken": "AAAA"}"#
        #expect(try await fixture.runImport(input: page).tally.bad == 1)
        #expect(fixture.reports == ["line 1: is one page of several: import-from-aws reads them all"])
    }

    @Test("stores the secret's content")
    func content() async throws {
        try put("alice@example.com")
        try put("no-refresh", ["refresh_token": nil])
        try await fixture.runImport()
        let grant = try await fixture.imports.grant("alice@example.com")
        #expect(grant.clientID == "1-a.apps.googleusercontent.com")
        #expect(grant.accessToken?.expiresAt == Timestamp(iso8601: "2027-01-15T08:30:00.123Z"))
        #expect(grant.owner == Grant.Owner(email: "alice@example.com@example.com", name: "N", emailIsVerified: true))
        #expect(try await fixture.imports.refreshToken("alice@example.com") == "1//refresh-alice@example.com")
        #expect(try await fixture.imports.grant("no-refresh").refreshToken == nil)
    }

    @Test("keeps the grants of users who are already stored, and says so only in detail")
    func resumed() async throws {
        for number in 0..<100 { try put("u\(number)") }
        try await fixture.runImport()
        for number in 100..<120 { try put("u\(number)") }
        let grants = try await fixture.runImport()
        #expect(grants.tally == ImportTally(stored: 20, kept: 100))
        #expect(
            grants.sentence(isDryRun: false).hasPrefix("120 secrets: 20 stored, 0 replaced, 100 kept, 0 bad, 0 deleted")
        )
        #expect(fixture.reports.isEmpty)
        #expect(fixture.details.count { $0.hasSuffix("is stored already: kept") } == 100)
    }

    @Test(
        "takes the client id from its secret, unless exactly one is configured",
        arguments: [[], ["a.x", "b.x"], ["c.x"]]
    )
    func clientID(configured: [String]) async throws {
        fixture.put("Google-OAuth-Client-ID", "1-a.apps.googleusercontent.com\n")
        try put("alice")
        #expect(try await fixture.runImport(clientIDs: configured).tally == ImportTally(stored: 1))
        let stored = try await fixture.imports.grant("alice").clientID
        #expect(stored == (configured.count == 1 ? configured[0] : "1-a.apps.googleusercontent.com"))
    }

    @Test("reports a secret of the client id that has none", arguments: [nil, "two\u{7}words", "1//HIDDEN x"])
    func wrongClientID(text: String?) async throws {
        fixture.put("Google-OAuth-Client-ID", text)
        try put("alice")
        #expect(try await fixture.runImport(clientIDs: []).tally.bad == 2)
        let reason = text == nil ? "is binary, not text" : "is not a client id (give --client-id): it "
        #expect(
            fixture.reports.first?.hasPrefix("secret 'Google-OAuth-Client-ID': \(reason)") == true,
            "\(fixture.reports)"
        )
        #expect(!fixture.reports.joined().contains("HIDDEN"))
        #expect(fixture.reports.last?.hasSuffix("client_id is missing, and none is configured") == true)
    }

    @Test("imports only secrets under the prefix, and reports invalid ones without showing them")
    func others() async throws {
        try put("good")
        fixture.put("gmail/user-other", try secretText("x"))
        fixture.put("gmail/user/", try secretText("x"))
        fixture.put("Google-OAuth-Client-ID", "1-a.apps.googleusercontent.com")
        fixture.put("gmail/user/binary", nil)
        fixture.put("gmail/user/broken", "1//HIDDEN")
        try put("impostor", ["user_id": "good"])
        fixture.refuse("gmail/user/going", "InvalidRequestException", "… because it was marked for deletion.")
        fixture.refuse("gmail/user/gone", "ResourceNotFoundException")
        fixture.refuse("gmail/user/denied", "AccessDeniedException")
        fixture.refuse("gmail/user/odd", "1//HIDDEN")
        let grants = try await fixture.runImport()
        let tally = grants.tally
        #expect(grants.deleted == 2 && grants.json.text.hasSuffix(#""deleted":2}"#))
        #expect(tally.stored == 1 && tally.read == 6)
        let reasons = [
            "is binary, not text", "cannot be read (AccessDeniedException)",
            "cannot be read (for an unknown reason)", "not JSON", "user_id names",
        ]
        #expect(tally.reasonLines.count == reasons.count)
        for reason in reasons {
            #expect(tally.reasonLines.contains { $0.hasPrefix("bad, 1 of 6: \(reason)") }, "\(reason)")
        }
        let words = [
            "secret 'gmail/user/binary': is binary, not text", "secret 'gmail/user/broken': not JSON",
            "secret 'gmail/user/impostor': user_id names another user than the secret's name",
            "secret 'gmail/user/denied': cannot be read (AccessDeniedException)",
        ]
        #expect(zip(fixture.reports, words).allSatisfy { $0.hasPrefix($1) }, "\(fixture.reports)")
        #expect(!fixture.reports.joined().contains("HIDDEN"))
    }

    @Test("a dry run reports the changes and makes none")
    func dryRun() async throws {
        try put("kept")
        try put("replaced")
        try await fixture.runImport()
        try put("new")
        let changes = ["refresh_token": "1//other", "created_at": "2027-01-15T09:00:00"]
        try put("replaced", changes, storedAt: 1_900_000_000)
        let before = try await fixture.imports.store.grants(after: nil, in: nil, atMost: 10)
        let tally = try await fixture.runImport(.replaceOlder, isDryRun: true)
        #expect(tally.tally == ImportTally(stored: 1, replaced: 1, kept: 1, bad: 0))
        #expect(
            tally.sentence(isDryRun: true)
                == """
                dry run, nothing was stored; 3 secrets: 1 to store, 1 to replace, 1 to keep, 0 bad, 0 deleted, under \
                gmail/user/
                """
        )
        #expect(fixture.details.contains("user 'new': would be stored"))
        #expect(try await fixture.imports.store.grants(after: nil, in: nil, atMost: 10) == before)
        #expect(try await fixture.runImport(.replaceOlder).tally == tally.tally)
    }
}

@Suite("Replacing by secrets of AWS Secrets Manager", .timeLimit(.minutes(10)))
struct SecretsManagerReplacementTests {
    /// A case; times are seconds from the manual clock's start, the date of the secret that was stored here.
    struct Case: CustomTestStringConvertible {
        let testDescription: String
        var createdAt: Int64?
        var versionAt: Int64
        let isReplaced: Bool
    }

    @Test(
        "replaces only by secrets that are newer than the stored refresh token",
        arguments: [
            Case(testDescription: "both dates earlier", createdAt: -60, versionAt: -60, isReplaced: false),
            Case(testDescription: "both later", createdAt: 60, versionAt: 61, isReplaced: true),
            Case(testDescription: "the same moment", createdAt: 0, versionAt: 0, isReplaced: false),
            // The backend wrote an old grant again, for example after a refresh.
            Case(testDescription: "only the version later", createdAt: -60, versionAt: 60, isReplaced: false),
            // The content claims to be newer than the version that contains it.
            Case(testDescription: "only the content later", createdAt: 60, versionAt: -60, isReplaced: false),
            Case(testDescription: "only a version's date, later", createdAt: nil, versionAt: 60, isReplaced: true),
            Case(testDescription: "only a version's date, earlier", createdAt: nil, versionAt: -1, isReplaced: false),
        ]
    )
    func dates(of one: Case) async throws {
        let fixture = try SecretsManagerFixture()
        let start = fixture.imports.time.now
        func seconds(_ offset: Int64) -> Double { Double((start + .seconds(offset)).milliseconds) / 1000 }
        fixture.put("gmail/user/a", try secretText("a", ["created_at": seconds(0)]), storedAt: seconds(0))
        try await fixture.runImport()
        fixture.imports.time.advance(by: .seconds(1000))
        let text = try secretText("a", ["refresh_token": "1//other", "created_at": one.createdAt.map { seconds($0) }])
        fixture.put("gmail/user/a", text, storedAt: seconds(one.versionAt))
        let tally = try await fixture.runImport(.replaceOlder)
        #expect(tally.tally.replaced == (one.isReplaced ? 1 : 0))
        #expect(try await fixture.imports.refreshToken("a") == (one.isReplaced ? "1//other" : "1//refresh-a"))
        #expect(try await fixture.runImport().tally.kept == 1)
    }

    enum UserChange: CaseIterable { case switched, ended }

    @Test("does not bring back what the user has left here, however new the secret", arguments: UserChange.allCases)
    func left(change: UserChange) async throws {
        let fixture = try SecretsManagerFixture()
        for user in ["a", "b"] { fixture.put("gmail/user/\(user)", try secretText("a")) }
        try await fixture.runImport()
        let stored = try await fixture.imports.grant("a")
        let (vault, now) = (fixture.imports.vault, fixture.imports.time.now + .seconds(10))
        fixture.imports.time.advance(by: .seconds(10))
        let owner = Grant.Owner(email: "other@example.com")
        let token = try vault.seal(refreshToken: Secret("1//other"), for: stored.id)
        try await fixture.imports.store.transact { transaction in
            guard change == .switched else {
                _ = try GrantDisconnection.end(stored, reason: .userRequest, in: transaction, at: now)
                return
            }
            try transaction.rememberRefreshToken(of: stored, at: now)
            var grant = stored
            let events = grant.reconnect(
                IncomingTokens(clientID: stored.clientID, owner: owner, refreshToken: token),
                replacesRefreshToken: true,
                discardsStored: true,
                dueAt: now,
                at: now
            )
            try transaction.update(grant)
            for event in events { try transaction.record(event) }
        }
        let changed = try await fixture.imports.grant("a")
        fixture.imports.time.advance(by: .seconds(10))
        // The former function has refreshed its copy of the first token.
        let date = Double(fixture.imports.time.now.milliseconds) / 1000
        for user in ["a", "b"] {
            fixture.put("gmail/user/\(user)", try secretText("a", ["created_at": date]), storedAt: date)
        }
        fixture.imports.time.advance(by: .seconds(1))
        let tally = try await fixture.runImport(.replaceOlder)
        #expect(tally.tally == ImportTally(replaced: 1, kept: 1))
        #expect(try await fixture.imports.grant("a") == changed)
        #expect(try await fixture.imports.refreshToken("b") == "1//refresh-a")
        // A token that the user gave the former backend since is new.
        let text = try secretText("a", ["created_at": date + 1, "refresh_token": "1//newest"])
        fixture.put("gmail/user/a", text, storedAt: date + 1)
        fixture.imports.time.advance(by: .seconds(1))
        #expect(try await fixture.runImport(.replaceOlder).tally.replaced >= 1)
        #expect(try await fixture.imports.refreshToken("a") == "1//newest")
    }

    @Test("keeps the scopes that were learned here for the same refresh token")
    func scopes() async throws {
        let fixture = try SecretsManagerFixture()
        fixture.put("gmail/user/a", try secretText("a", ["scope": nil]))
        try await fixture.runImport()
        func replace(_ scope: String, after seconds: Int) async throws -> String {
            fixture.imports.time.advance(by: .seconds(seconds))
            let now = Double(fixture.imports.time.now.milliseconds) / 1000
            fixture.put(
                "gmail/user/a",
                try secretText("a", ["scope": scope, "created_at": now]),
                storedAt: now
            )
            fixture.imports.time.advance(by: .seconds(1))
            #expect(try await fixture.runImport(.replaceOlder).tally.replaced == 1)
            return try await fixture.imports.grant("a").scope
        }
        #expect(try await replace("openid gmail", after: 10) == "openid gmail")
        #expect(try await replace("openid", after: 10) == "openid gmail")
    }

    @Test("replaces what was written between the reading and the storing of an import")
    func writtenDuringImport() async throws {
        let fixture = try SecretsManagerFixture()
        let now = Double(fixture.imports.time.now.milliseconds) / 1000
        fixture.put("gmail/user/a", try secretText("a", ["created_at": now - 500]), storedAt: now - 500)
        // The secrets were read a hundred seconds ago. The user has connected again since, at the former backend.
        try await fixture.runImport()
        let text = try secretText("a", ["refresh_token": "1//newer", "created_at": now - 50])
        fixture.put("gmail/user/a", text, storedAt: now - 50)
        fixture.imports.time.advance(by: .seconds(600))
        #expect(try await fixture.runImport(.replaceOlder).tally == ImportTally(replaced: 1))
        #expect(try await fixture.imports.refreshToken("a") == "1//newer")
        #expect(try await fixture.runImport(.replaceOlder).tally == ImportTally(kept: 1), "it is stored now")
    }

    @Test("does not connect a user who disconnected here before the grant was imported")
    func disconnectedBefore() async throws {
        let fixture = try SecretsManagerFixture()
        let start = fixture.imports.time.now
        for user in ["a", "a:b"] { fixture.put("gmail/user/\(user)", try secretText("a")) }
        try await fixture.imports.store.transact { transaction in
            try transaction.recordDisconnect(ofUserWithoutGrant: "a", at: start)
        }
        fixture.imports.time.advance(by: .seconds(60))
        for existing in [ImportedGrantWriter.Existing.keep, .replaceOlder] {
            let tally = try await fixture.runImport(existing).tally
            #expect(tally.kept >= 1 && tally.replaced == 0 && tally.bad == 0)
        }
        #expect(try await fixture.imports.store.grant(ofUser: "a") == nil)
        #expect(try await fixture.imports.store.grant(ofUser: "a:b") != nil, "this is another user")

        // A grant that the user has given the former backend since is a new one.
        let later = Double((start + .seconds(30)).milliseconds) / 1000
        fixture.put("gmail/user/a", try secretText("a", ["created_at": later]), storedAt: later)
        #expect(try await fixture.runImport().tally.stored == 1)
    }

    enum Change: CaseIterable { case rotation, disconnection, refresh }

    @Test("counts a rotation and an end as newer, and a refresh alone not", arguments: Change.allCases)
    func history(change: Change) async throws {
        let fixture = try SecretsManagerFixture()
        let start = fixture.imports.time.now
        fixture.put("gmail/user/a", try secretText("a"))
        try await fixture.runImport()
        fixture.imports.time.advance(by: .seconds(1000))
        var grant = try await fixture.imports.grant("a")
        let now = fixture.imports.time.now
        let events: [GrantEvent]
        switch change {
        case .rotation: events = grant.rotate(to: grant.refreshToken, at: now)
        case .disconnection: events = grant.disconnectByRequest(revokes: false, at: now)
        case .refresh:
            let later = RefreshedTokens(accessToken: try #require(grant.accessToken))
            events = grant.refreshed(later, at: now, due: { _ in now })
        }
        let changed = grant
        try await fixture.imports.store.transact { transaction in
            try transaction.update(changed)
            for event in events { try transaction.record(event) }
        }
        let between = Double((start + .seconds(500)).milliseconds) / 1000
        let text = try secretText("a", ["refresh_token": "1//other", "created_at": between])
        fixture.put("gmail/user/a", text, storedAt: between)
        let tally = try await fixture.runImport(.replaceOlder)
        #expect(tally.tally.replaced == (change == .refresh ? 1 : 0))
        #expect(try await fixture.imports.grant("a").state == (change == .disconnection ? .disconnected : .active))
    }
}
