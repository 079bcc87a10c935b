import Crypto
import Testing

@testable import Storage

@Suite("A refresh token is recognised by its name in a security event")
struct TokenMarkTests {
    private static let token = "1//0example-of-a-refresh-token"
    // `printf %s TOKEN | openssl sha512 -binary | openssl sha512 -binary | base64 -w0`
    private static let doubleHash =
        "6NjLoOK/unMHFE2Imrqpafcs3XZV2vhVQtWXBbaBtI/2nC+hIuAFcbyJ+zCBJQDlc/mrJIFKH9UjzN/VbgjHeA=="

    private let marks = TokenMarks(of: Secret(token))

    @Test("The first sixteen characters name it, and more of them do too", arguments: [16, 17, 30])
    func prefix(length: Int) {
        #expect(TokenMark(prefix: String(Self.token.prefix(length))) == marks.prefix)
    }

    @Test("Fewer characters, or others, do not")
    func otherPrefix() {
        #expect(TokenMark(prefix: String(Self.token.prefix(15))) == nil)
        #expect(TokenMark(prefix: "1//0another-of-a-refresh-token") != marks.prefix)
        #expect(TokenMarks(of: Secret(Self.token + "x")).prefix == marks.prefix)
        #expect(TokenMarks(of: Secret(Self.token + "x")).digest != marks.digest)
    }

    @Test("The double hash names it in every kind of Base64")
    func digest() {
        let safe = Self.doubleHash.replacing("+", with: "-").replacing("/", with: "_")
        for text in [Self.doubleHash, safe] {
            #expect(TokenMark(doubleHash: text) == marks.digest)
            #expect(TokenMark(doubleHash: text.replacing("=", with: "")) == marks.digest)
        }
    }

    @Test("A text that is not a hash of that length names no token")
    func noDigest() {
        for text in ["", "=", "====", "!", String(Self.doubleHash.dropFirst(4)), Self.doubleHash + "=", "é"] {
            #expect(TokenMark(doubleHash: text) == nil, "\(text)")
        }
    }

    @Test("No part of the token is in a mark")
    func secrecy() {
        let text = "\(marks)"
        #expect(!text.contains(Self.token.prefix(16)))
        #expect(marks.prefix.bytes.count == 32 && marks.digest.bytes.count == 32)
    }

    @Test("A sealed refresh token carries its marks, and a resealed one keeps them")
    func vault() throws {
        let vault = try Sample.vault()
        let id = GrantID(rawValue: 1)
        let token = try vault.seal(refreshToken: Secret(Self.token), for: id, expiresAt: start)
        #expect(token.marks == marks && token.expiresAt == start)
        var grant = try Sample.grant(1)
        grant.reseal(refreshToken: token, accessToken: nil)
        #expect(grant.refreshToken?.marks == marks && grant.refreshToken?.expiresAt == nil)
    }
}
