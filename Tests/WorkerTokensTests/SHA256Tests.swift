import Foundation
import Testing

@testable import WorkerTokens

@Suite("SHA-256 and HMAC-SHA256")
struct SHA256Tests {
    /// The examples of FIPS 180-4 (https://csrc.nist.gov/projects/cryptographic-standards-and-guidelines/example-values)
    /// and short messages of NIST's SHA256ShortMsg.rsp.
    @Test(
        "The digests are NIST's",
        arguments: [
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            ("616263", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                "6162636462636465636465666465666765666768666768696768696a68696a6b696a6b6c6a6b6c6d6b6c6d6e6c6d6e6f6d6e6f706e6f7071",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
            ),
            ("d3", "28969cdfa74a12c82f3bad960b0b000aca2ac329deea5c2328ebc6f2ba9802c1"),
            ("11af", "5ca7133fa735326081558ac312c620eeca9970d1e70a4b95533d956f072d1f98"),
            ("74ba2521", "b16aa56be3880d18cd41e68384cf1ec8c17680c45a02b1575dc1518923ae8b0e"),
        ]
    )
    func digests(message: String, digest: String) {
        #expect(Self.hexadecimal(SHA256.digest(of: Self.bytes(message))) == digest)
    }

    @Test("The digest of a million letters is NIST's")
    func longMessage() {
        let message = [UInt8](repeating: UInt8(ascii: "a"), count: 1_000_000)
        let digest = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
        #expect(Self.hexadecimal(SHA256.digest(of: message)) == digest)
    }

    @Test("Every length around a block has its padding: the digests are those of sha256sum")
    func padding() {
        // printf 'a%.0s' $(seq 55) | sha256sum, and so on.
        let digests = [
            55: "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318",
            56: "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a",
            63: "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34",
            64: "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb",
            65: "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0",
        ]
        for (length, digest) in digests {
            let message = [UInt8](repeating: UInt8(ascii: "a"), count: length)
            #expect(Self.hexadecimal(SHA256.digest(of: message)) == digest, "of \(length) letters")
        }
    }

    /// The test cases of RFC 4231, section 4. The fifth has a truncated code.
    @Test(
        "The codes are those of RFC 4231",
        arguments: [
            (
                String(repeating: "0b", count: 20), "4869205468657265",
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
            ),
            (
                "4a656665", "7768617420646f2079612077616e7420666f72206e6f7468696e673f",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
            ),
            (
                String(repeating: "aa", count: 20), String(repeating: "dd", count: 50),
                "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"
            ),
            (
                "0102030405060708090a0b0c0d0e0f10111213141516171819", String(repeating: "cd", count: 50),
                "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"
            ),
            (
                String(repeating: "0c", count: 20), "546573742057697468205472756e636174696f6e",
                "a3b6167473100ee06e0c796c2955552b"
            ),
            (
                String(repeating: "aa", count: 131),
                "54657374205573696e67204c6172676572205468616e20426c6f636b2d53697a65204b6579202d2048617368204b6579204669727374",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
            ),
            (
                String(repeating: "aa", count: 131),
                """
                5468697320697320612074657374207573696e672061206c6172676572207468616e20626c6f636b2d73697a65206b657920616e642061206c\
                6172676572207468616e20626c6f636b2d73697a6520646174612e20546865206b6579206e6565647320746f2062652068617368656420626\
                5666f7265206265696e6720757365642062792074686520484d414320616c676f726974686d2e
                """,
                "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"
            ),
        ]
    )
    func codes(key: String, message: String, code: String) {
        let computed = Self.hexadecimal(AuthenticationKey(Self.bytes(key)).code(for: Self.bytes(message)))
        #expect(computed.prefix(code.count) == code)
    }

    @Test("Two codes are equal only if every byte is")
    func comparison() {
        let code = SHA256.digest(of: [1])
        #expect(AuthenticationKey.areEqual(code, code))
        #expect(!AuthenticationKey.areEqual(code, Array(code.dropLast())))
        for index in code.indices {
            var other = code
            other[index] ^= 1
            #expect(!AuthenticationKey.areEqual(code, other))
        }
    }

    private static func bytes(_ text: String) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = text[...]
        while !rest.isEmpty {
            bytes.append(UInt8(rest.prefix(2), radix: 16) ?? 0)
            rest = rest.dropFirst(2)
        }
        return bytes
    }

    private static func hexadecimal(_ bytes: [UInt8]) -> String {
        bytes.map { String(format: "%02x", Int($0)) }.joined()
    }
}
