import Crypto
import Testing

@testable import Base
@testable import GoogleOAuth

@Suite("A key set")
struct KeySetTests {
    private static let elliptic =
        #""kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0""#

    private static func rsa() throws -> String {
        let modulus = Base64URL.encode(try TestKeys.key(0).publicNumbers().modulus)
        return #""kty":"RSA","n":"\#(modulus)","e":"AQAB""#
    }

    private static func set(_ entries: [String]) -> KeySet? {
        KeySet(JSONValue.object(in: Array(#"{"keys":[\#(entries.joined(separator: ","))]}"#.utf8)))
    }

    @Test("has RSA and P-256 keys by their ids, whatever else is beside them")
    func kinds() throws {
        let set = try #require(
            Self.set([
                #"{"kid":"a","alg":"RS256","use":"sig","x5c":["AAAA"],"x5t":7,\#(try Self.rsa())}"#,
                #"{"kid":"b","alg":"ES256","key_ops":["verify"],\#(Self.elliptic)}"#, #"{"kid":"c",\#(Self.elliptic)}"#,
            ])
        )
        #expect(set.keys.mapValues(\.algorithm) == ["a": .rs256, "b": .es256, "c": .es256])
        #expect(set.summary == "3 keys (1 RS256, 2 ES256)")
    }

    @Test(
        "skips keys without an id, for another use or algorithm, and of another kind",
        arguments: [
            #"{KEY}"#, #"{"kid":"",KEY}"#, #"{"kid":7,KEY}"#, #"{"kid":"a","use":"enc",KEY}"#,
            #"{"kid":"a","use":7,KEY}"#, #"{"kid":"a","alg":"RS384",KEY}"#, #"{"kid":"a","alg":"HS256",KEY}"#,
            #"{"kid":"a","alg":"none",KEY}"#, #"{"kid":"a","alg":7,KEY}"#, #"{"kid":"a","alg":"OTHER",KEY}"#,
            #"{"kid":"\#(String(repeating: "k", count: 256))",KEY}"#,
        ]
    )
    func skipped(entry: String) throws {
        for (key, other) in [(try Self.rsa(), "ES256"), (Self.elliptic, "RS256")] {
            #expect(Self.set([entry.replacing("KEY", with: key).replacing("OTHER", with: other)]) == nil)
        }
    }

    @Test("has no key that is weak, incomplete or of an unknown kind")
    func unusable() throws {
        let short = Base64URL.encode([UInt8](repeating: 0xff, count: 128))
        for key in [
            #""kty":"oct","k":"AAAA""#, #""kty":"RSA","n":"\#(short)","e":"AQAB""#, #""kty":"RSA","e":"AQAB""#,
            try Self.rsa().replacing("AQAB", with: "AQ"), Self.elliptic.replacing("P-256", with: "P-384"),
            Self.elliptic.replacing("f83O", with: "f83P"), #""kty":"EC","crv":"P-256""#, #""kty":7"#,
        ] {
            #expect(Self.set([#"{"kid":"a",\#(key)}"#]) == nil)
        }
    }

    @Test("is refused with more than 64 keys, or without any")
    func limit() throws {
        let entries = (0...64).map { #"{"kid":"\#($0)",\#(Self.elliptic)}"# }
        #expect(Self.set(Array(entries.dropLast()))?.keys.count == 64)
        #expect(Self.set(entries) == nil)
        #expect(Self.set([]) == nil)
        #expect(KeySet(nil) == nil)
        #expect(KeySet(.object(["keys": .string("a")])) == nil)
    }
}
