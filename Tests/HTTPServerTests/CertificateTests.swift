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
        let error = try #require(throws: HTTPServerError.self) { try read("server.pem", "ca.key") }
        #expect(error.code == .foreignKey)
        #expect("\(error)" == "the key does not belong to the first certificate")
    }

    @Test("that cannot be read are refused, each by its own name")
    func unreadable() throws {
        defer { authority.remove() }
        try authority.issue("server", for: "IP:127.0.0.1")
        let certificate = try #require(throws: HTTPServerError.self) { try read("server.key", "server.key") }
        #expect(certificate.code == .badCertificate)
        #expect("\(certificate)".hasPrefix("the file has no certificate in PEM that can be read ("))
        let key = try #require(throws: HTTPServerError.self) { try read("server.pem", "server.pem") }
        #expect(key.code == .badKey)
        #expect("\(key)".hasPrefix("the file has no key in PEM without a passphrase that can be read ("))
        try ChildProcess(
            Tool.openssl.path,
            [
                "ec", "-in", authority.path("server.key"), "-aes256", "-passout", "pass:x",
                "-out", authority.path("locked.key"),
            ]
        ).waitForSuccess()
        let locked = try #require(throws: HTTPServerError.self) { try read("server.pem", "locked.key") }
        #expect(locked.code == .badKey)
        #expect(throws: HTTPServerError.self) { try ServerCertificate(chain: [], key: Secret("")) }
    }
}
