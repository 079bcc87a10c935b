import Base
import Foundation
import Routes
import TestSupport
import Testing

@testable import RefreshWorker

@Suite("Doctor on listeners and notices", .timeLimit(.minutes(10)))
struct DoctorServingTests {
    private static let secret = String(repeating: "s", count: 32)

    /// A complete, valid set-up with a trusted proxy.
    private func flags(_ fixture: OperatorFixture) throws -> [(Setting.Name, String)] {
        try fixture.write(Self.secret + "\n", to: "jwt")
        try fixture.write(Self.secret + "\n", to: "notices")
        let credential = try #require(try ServiceCredential(forService: "mailer"))
        try fixture.write("{\"services\": [\(credential.entry)]}", to: "services", mode: 0o640)
        return [
            (.clientID, "1-a"), (.listen, "127.0.0.1:0"), (.trustedProxy, "127.0.0.1"),
            (.listenInternal, "unix:\(fixture.path("socket"))"), (.jwtSecretFile, fixture.path("jwt")),
            (.servicesFile, fixture.path("services")), (.noticeURL, "http://127.0.0.1:9/"),
            (.noticeSecretFile, fixture.path("notices")),
        ]
    }

    private func diagnose(
        _ fixture: OperatorFixture,
        without left: Set<Setting.Name> = [],
        with others: [(Setting.Name, String)] = []
    ) throws -> [Check] {
        // The first value of a setting counts.
        let flags = others + (try flags(fixture)).filter { !left.contains($0.0) }
        return try Doctor(context: fixture.context(flags)).servingChecks()
    }

    @Test("a worker without listeners and notices gets no checks")
    func nothing() async throws {
        try await OperatorFixture.with { fixture in
            let doctor = Doctor(context: try fixture.context())
            #expect(doctor.servingChecks() == [])
        }
    }

    @Test("each part of a valid set-up is ok")
    func good() async throws {
        try await OperatorFixture.with { fixture in
            let checks = try diagnose(fixture)
            #expect(checks.allSatisfy { $0.severity == .ok }, "\(checks)")
            let subjects = [
                "app's token secret", "former refresh tokens", "services", "notice secret", "public listener",
                "internal listener",
            ]
            #expect(checks.map(\.name) == subjects)
            #expect(!"\(checks)".contains(Self.secret))
            #expect(try fixture.names == ["jwt", "notices", "services"], "the doctor created a socket")
        }
    }

    @Test("it shows the end of the time for former refresh tokens")
    func formerTokens() async throws {
        try await OperatorFixture.with { fixture in
            let cases: [(String?, Check.Severity, String)] = [
                (nil, .ok, "refused: --accept-former-refresh-tokens-until accepts"),
                ("2099-01-01", .ok, "accepted until 2099-01-01T00:00:00Z"),
                ("2020-01-01T12:00:00Z", .warning, "refused since 2020-01-01T12:00:00Z: remove"),
            ]
            for (date, severity, text) in cases {
                let checks = try diagnose(fixture, with: date.map { [(.acceptFormerRefreshTokensUntil, $0)] } ?? [])
                let check = try #require(checks.first { $0.name == "former refresh tokens" })
                #expect(check.severity == severity && check.text.contains(text), "\(check)")
            }
        }
    }

    /// A file of the valid set-up, its damaged content, and the expected check.
    struct Damage: Sendable, CustomTestStringConvertible {
        let file: String
        let text: String
        let mode: Int
        let subject: String
        let advice: String

        var testDescription: String { "\(file): \(advice)" }
    }

    @Test(
        "a secret or a services file that the worker would refuse is a fault with advice",
        arguments: [
            Damage(file: "jwt", text: "short", mode: 0o600, subject: "app's token secret", advice: "32"),
            Damage(file: "jwt", text: secret, mode: 0o644, subject: "app's token secret", advice: "chmod 600"),
            Damage(file: "services", text: "{}", mode: 0o600, subject: "services", advice: "services"),
            Damage(file: "services", text: "{\"services\"", mode: 0o600, subject: "services", advice: "JSON"),
            Damage(file: "notices", text: "short", mode: 0o600, subject: "notice secret", advice: "openssl rand"),
            Damage(file: "notices", text: "whsec_c2hvcnQ=", mode: 0o600, subject: "notice secret", advice: "whsec_"),
            Damage(
                file: "notices",
                text: "\(secret)\n\(secret)\n\(secret)",
                mode: 0o600,
                subject: "notice secret",
                advice: "two"
            ),
            Damage(file: "notices", text: secret, mode: 0o604, subject: "notice secret", advice: "chmod 600"),
        ]
    )
    func damaged(_ damage: Damage) async throws {
        try await OperatorFixture.with { fixture in
            let flags = try flags(fixture)
            try fixture.write(damage.text, to: damage.file, mode: damage.mode)
            let faults = Doctor(context: try fixture.context(flags)).servingChecks().filter { $0.severity != .ok }
            #expect(faults.map(\.name) == [damage.subject])
            #expect(faults.first?.severity == .fault)
            #expect(faults.first?.text.contains(damage.advice) == true, "\(faults)")
        }
    }

    @Test("missing trusted proxies are a warning for a listener of this machine only")
    func proxies() async throws {
        try await OperatorFixture.with { fixture in
            let found = try diagnose(fixture, without: [.trustedProxy]).filter { $0.severity != .ok }
            #expect(found.map(\.name) == ["trusted proxies"])
            #expect(found.first?.severity == .warning)
            let open = try diagnose(fixture, without: [.trustedProxy, .listen], with: [(.listen, "0.0.0.0:0")])
            #expect(open.allSatisfy { $0.severity == .ok }, "\(open)")
        }
    }

    @Test("the internal listener's certificate is checked by its dates", arguments: [2, -1])
    func certificate(days: Int) async throws {
        try #require(Tool.openssl.isInstalled)
        let authority = try TestAuthority()
        defer { authority.remove() }
        try authority.issue("internal", for: "IP:127.0.0.1", days: days)
        let chain = try String(contentsOfFile: authority.path("internal.pem"), encoding: .utf8)
        let key = try String(contentsOfFile: authority.path("internal.key"), encoding: .utf8)
        try await OperatorFixture.with { fixture in
            try fixture.write(chain, to: "chain", mode: 0o644)
            try fixture.write(key, to: "key")
            let tls: [(Setting.Name, String)] = [
                (.listenInternal, "0.0.0.0:0"), (.internalCertificate, fixture.path("chain")),
                (.internalKey, fixture.path("key")),
            ]
            let found = try diagnose(fixture, without: [.listenInternal], with: tls)
            let certificate = try #require(found.first { $0.name == "internal certificate" })
            #expect(certificate.severity == (days > 0 ? .ok : .warning))
            #expect(certificate.text.contains(days > 0 ? "valid until" : "expired at"), "\(certificate)")
            #expect(found.filter { $0 != certificate }.allSatisfy { $0.severity == .ok }, "\(found)")

            try fixture.write(key, to: "key", mode: 0o644)
            let open = try diagnose(fixture, without: [.listenInternal], with: tls)
            #expect(open.first { $0.severity == .fault }?.text.contains("chmod 600") == true, "\(open)")
            #expect(!"\(open)".contains("PRIVATE"))

            let plain = try diagnose(fixture, without: [.listenInternal], with: [(.listenInternal, "0.0.0.0:0")])
            let listener = try #require(plain.first { $0.name == "settings" })
            #expect(listener.severity == .fault)
            #expect(listener.text.contains("--internal-certificate"), "\(plain)")
        }
    }

    @Test("an impossible address is a fault, one in use may be the worker's own")
    func listeners() async throws {
        try await OperatorFixture.with { fixture in
            let server = try ScriptedServer { _ in [] }
            defer { server.stop() }
            let taken = try diagnose(fixture, without: [.listen], with: [(.listen, "127.0.0.1:\(server.port)")])
            #expect(taken.first { $0.name == "public listener" }?.text.contains("is in use") == true, "\(taken)")

            // Addresses reserved for documentation do not belong to any machine
            // (https://www.rfc-editor.org/rfc/rfc5737).
            let foreign = try diagnose(fixture, without: [.listen], with: [(.listen, "192.0.2.1:80")])
            #expect(foreign.filter { $0.severity == .fault }.map(\.name) == ["public listener"])

            try fixture.write("", to: "file")
            for path in ["file", "none/socket"] {
                let location = "unix:\(fixture.path(path))"
                let found = try diagnose(fixture, without: [.listenInternal], with: [(.listenInternal, location)])
                #expect(found.first { $0.name == "internal listener" }?.severity == .fault, "\(found)")
            }
        }
    }
}
