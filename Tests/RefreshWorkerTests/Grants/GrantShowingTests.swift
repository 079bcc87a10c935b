import Foundation
import Storage
import TestSupport
import Testing

@testable import Base
@testable import Crypto
@testable import Records
@testable import RefreshWorker

@Suite("Showing grants", .timeLimit(.minutes(10)))
struct GrantShowingTests {
    private let fixture: ImportFixture

    init() throws {
        fixture = try ImportFixture()
    }

    @Test("prints exactly the documented members in a list")
    func members() async throws {
        try await fixture.importText(try line("a", ["scope": nil, "google_email": nil]))
        let grant = try await fixture.grant("a")
        let names: Set = [
            "user_id", "connection", "state", "reason", "since", "google_email", "scope", "client_id", "expires_at",
            "due_at", "last_success_at", "attempts", "generation", "grant",
        ]
        let listed = try #require(try JSONValue.parse(written { grant.write(to: &$0) }.bytes).object)
        #expect(Set(listed.keys) == names)
        for absent in ["reason", "google_email", "scope", "last_success_at"] { #expect(listed[absent] == .null) }
        #expect(listed["expires_at"] == .string("2027-01-15T09:00:00.000Z"))
        let shown = try #require(
            try JSONValue.parse(written { grant.writeWithWarnings(to: &$0, at: fixture.time.now) }.bytes)
                .object
        )
        #expect(Set(shown.keys) == names.union(["refresh_token_expires_at", "warnings"]))
    }

    @Test("shows tokens and control characters only in an export")
    func noToken() async throws {
        let hostile = "u\u{202e}\u{9b}2J"
        try await fixture.importText(
            try line("hostile", ["google_email": hostile, "google_name": hostile + "\n\u{1b}[2J"])
        )
        let grant = try await fixture.grant("hostile")
        let now = fixture.time.now
        let history = try await fixture.store.events(of: grant.id, atMost: 10)
        var table = Listing(GrantColumns.all, width: 80)
        let texts =
            [
                written { grant.write(to: &$0) }.text,
                written { grant.writeWithWarnings(to: &$0, at: now) }.text, "\(grant)",
            ]
            + table.lines(of: [grant], at: now)
            + grant.lines(with: history, at: now)
        for text in texts {
            #expect(!text.contains("ya29."))
            #expect(!text.contains("1//"))
        }
        for text in texts where text != "\(grant)" {
            #expect(!text.unicodeScalars.contains { $0.disturbsTerminals })
        }
        #expect(try await fixture.export().contains("1//refresh-hostile"))
    }

    @Test("says what a grant waits for, and colours an expired token on a terminal")
    func waiting() async throws {
        try await fixture.importText(try line("a"))
        let grant = try await fixture.grant("a")
        let lines = grant.lines(
            with: [],
            waiting: "waits: no worker is running",
            at: fixture.time.now,
            isColoured: true
        )
        #expect(lines.contains { $0.hasPrefix("state ") && $0.hasSuffix("active; waits: no worker is running") })
        let later = grant.lines(with: [], at: fixture.time.now + .seconds(7200), isColoured: true)
        #expect(later.contains { $0.hasPrefix("access token") && $0.contains("\u{1b}[31mexpired\u{1b}[0m ") })
        let plain = grant.lines(with: [], at: fixture.time.now + .seconds(7200))
        #expect(!plain.contains { $0.contains("\u{1b}") } && plain.contains { $0.contains("expired ") })
    }

    @Test("aligns the columns and fits a terminal, whatever their content", arguments: [60, 80, 120, 400])
    func table(width: Int) async throws {
        let long = String(repeating: "long", count: 200)
        try await fixture.importText(
            try line("a") + "\n" + line(long, ["state": "reauth_required", "reason": "no_refresh_token"])
        )
        let grants = try await fixture.store.grants(after: nil, in: nil, atMost: 10)
        var table = Listing(GrantColumns.all, width: width)
        let lines = table.lines(of: grants, at: fixture.time.now)
        let column = try #require(lines[0].range(of: "STATE")).lowerBound
        let offset = lines[0].distance(from: lines[0].startIndex, to: column)
        for (line, grant) in zip(lines.dropFirst(), grants) {
            #expect(line.dropFirst(offset).hasPrefix(grant.state.rawValue))
            #expect(line.count <= width)
            #expect(line.last != " ")
        }
        #expect(lines[0].contains("E-MAIL") == (width > 80), "columns without room are left out")
        let again = table.lines(of: [try await fixture.grant("a")], at: fixture.time.now)
        #expect(again.count == 1)
        #expect(again[0].dropFirst(offset).hasPrefix("active"))
    }

    @Test("cuts no text in a pipe")
    func pipe() async throws {
        let long = String(repeating: "long", count: 200)
        try await fixture.importText(try line("a") + "\n" + line(long, ["google_email": long + "@example.com"]))
        let grants = try await fixture.store.grants(after: nil, in: nil, atMost: 10)
        var table = Listing(GrantColumns.all, width: nil)
        let lines = table.lines(of: grants, at: fixture.time.now)
        let row = try #require(lines.first { $0.hasPrefix(long) })
        #expect(row.hasSuffix("  \(long)@example.com"))
        let other = try #require(lines.first { $0.hasPrefix("a ") })
        #expect(other.count < 150, "a very long text does not widen the other lines")
    }

    @Test("prints exactly these members of an event")
    func event() async throws {
        try await fixture.importText(try line("a"))
        let grant = try await fixture.grant("a")
        let event = try #require(try await fixture.store.events(of: grant.id, atMost: 1).first)
        let printed = try #require(try JSONValue.parse(written { event.write(to: &$0) }.bytes).object)
        #expect(Set(printed.keys) == ["at", "event", "from", "to", "reason", "generation", "grant"])
        #expect(printed["event"] == .string("connected") && printed["reason"] == .null)
    }

    @Test("warns of refresh tokens that expire, are missing or idle")
    func warnings() async throws {
        try await fixture.importText(
            [
                try line("ends", ["refresh_token_expires_in": 86_400]), try line("none", ["refresh_token": nil]),
                try line("well"), try line("dead", ["state": "disconnected", "refresh_token": nil]),
            ].joined(separator: "\n")
        )
        let now = fixture.time.now
        #expect(GrantWarning.all(of: try await fixture.grant("ends"), at: now) == [.refreshTokenEnds])
        #expect(GrantWarning.all(of: try await fixture.grant("none"), at: now) == [.noRefreshToken])
        #expect(GrantWarning.all(of: try await fixture.grant("well"), at: now) == [])
        #expect(GrantWarning.all(of: try await fixture.grant("dead"), at: now) == [])
        #expect(GrantWarning.all(of: try await fixture.grant("well"), at: now + .seconds(151 * 86_400)) == [.idle])
    }

    @Test("reports a token that no key opens, and exports the others")
    func unreadable() async throws {
        try await fixture.importText(try line("a") + "\n" + line("b"))
        let otherRing = try KeyRing(keys: [.random()])
        let grant = try await fixture.grant("b")
        let otherVault = TokenVault(ring: try ReloadableKeyRing { otherRing })
        let sealed = try otherVault.seal(refreshToken: Secret("1//other"), for: grant.id)
        try await fixture.store.transact { transaction in
            var changed = grant
            changed.reseal(refreshToken: sealed, accessToken: nil)
            try transaction.update(changed)
        }
        let text = try await fixture.export()
        #expect(text.contains("1//refresh-a"))
        #expect(!text.contains("\"b\""))
        #expect(fixture.reports.count == 1)
        #expect(fixture.reports.first?.hasPrefix("user 'b': a stored token cannot be opened") == true)
        // Replacing the grant repairs it.
        try await fixture.importText(try line("b"), replace: true)
        #expect(try await fixture.refreshToken("b") == "1//refresh-b")
    }
}
