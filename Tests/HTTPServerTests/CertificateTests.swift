import Base
import Crypto
import Foundation
import TestSupport
import Testing

@testable import HTTPServer

@Suite("A certificate and its key", .enabled(if: Tool.openssl.isInstalled, "openssl is not installed"))
struct CertificateTests {
    private let authority: TestAuthority

    init() throws {
        authority = try TestAuthority()
    }

    private func read(_ certificate: String, _ key: String) throws -> ServerCertificate {
        try ServerCertificate(
            chain: Array(Data(contentsOf: URL(filePath: authority.path(certificate)))),
            key: Secret(utf8: Data(contentsOf: URL(filePath: authority.path(key))))
        )
    }

    @Test("give the dates of the first certificate", arguments: [2, -1])
    func dates(days: Int) throws {
        defer { authority.remove() }
        try authority.issue("server", for: "IP:127.0.0.1", days: days)
        let certificate = try read("server.pem", "server.key")
        let now = Double(SystemTime().now.milliseconds) / 1000
        let ends = Double(certificate.expiresAt.milliseconds) / 1000
        #expect(abs(ends - (now + Double(days) * 86_400)) < 3600)
        #expect(abs(Double(certificate.validFrom.milliseconds) / 1000 - now) < 3600)
    }

    @Test("that do not belong together are refused")
    func mismatch() throws {
        defer { authority.remove() }
        try authority.issue("server", for: "IP:127.0.0.1")
        #expect(throws: ServerCertificateError.mismatch) { try read("server.pem", "ca.key") }
    }

    @Test("that cannot be read are refused, each by its own name")
    func unreadable() throws {
        defer { authority.remove() }
        try authority.issue("server", for: "IP:127.0.0.1")
        let certificate = try #require(throws: ServerCertificateError.self) { try read("server.key", "server.key") }
        guard case .badCertificate = certificate else { throw certificate }
        let key = try #require(throws: ServerCertificateError.self) { try read("server.pem", "server.pem") }
        guard case .badKey = key else { throw key }
        try ChildProcess(
            Tool.openssl.path,
            [
                "ec", "-in", authority.path("server.key"), "-aes256", "-passout", "pass:x",
                "-out", authority.path("locked.key"),
            ]
        ).waitForSuccess()
        let locked = try #require(throws: ServerCertificateError.self) { try read("server.pem", "locked.key") }
        guard case .badKey = locked else { throw locked }
        #expect(throws: ServerCertificateError.self) { try ServerCertificate(chain: [], key: Secret("")) }
    }
}
