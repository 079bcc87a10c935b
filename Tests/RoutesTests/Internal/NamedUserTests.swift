import Crypto
import Storage
import Testing

@testable import Routes

@Suite("A handle")
struct NamedUserTests {
    private static func service(_ name: String = "mailer", credential: String = "rwc_a") -> Service {
        let hash = Digest.sha256(Array(credential.utf8))
        return Service(name: name, credentialHash: hash, scopes: .everything, users: .everything)
    }

    @Test("names one user, always by the same text", arguments: ["42", "a/b c", "caf\u{e9}", "rwh_x"])
    func roundTrip(user: String) throws {
        let handle = try Self.service().handle(of: user)
        #expect(try Self.service().user(ofHandle: handle)?.userID == user)
        #expect(try Self.service().handle(of: user) == handle)
        #expect(handle.hasPrefix("rwh_") && handle.isPlainToken)
    }

    @Test("can name a connection too, and then gives no other")
    func connection() throws {
        let work = try #require(ConnectionID("work"))
        let handle = try Self.service().handle(of: "42", connection: work)
        #expect(try Self.service().user(ofHandle: handle) == NamedUser(userID: "42", connection: work))
        #expect(try Self.service().handle(of: "42") != handle)
    }

    @Test("belongs to one service and its present credential")
    func revoked() throws {
        let handle = try Self.service().handle(of: "42")
        #expect(try Self.service("other").user(ofHandle: handle) == nil)
        #expect(try Self.service(credential: "rwc_b").user(ofHandle: handle) == nil)
    }

    @Test("that was altered names nobody", arguments: ["", "rwh_", "rwh_AAAA", "42", "rwh_!"])
    func foreign(text: String) throws {
        #expect(try Self.service().user(ofHandle: text) == nil)
        let handle = try Self.service().handle(of: "42")
        #expect(try Self.service().user(ofHandle: handle + "A") == nil)
        #expect(try Self.service().user(ofHandle: String(handle.dropLast())) == nil)
        #expect(try Self.service().user(ofHandle: handle.replacing("rwh_", with: "RWH_")) == nil)
    }
}

extension String {
    /// `true` for characters that a form and a header carry unchanged.
    fileprivate var isPlainToken: Bool {
        utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                true
            default: false
            }
        }
    }
}
