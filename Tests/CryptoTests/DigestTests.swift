import Crypto
import Testing

@Suite("A digest")
struct DigestTests {
    /// The examples of FIPS 180-4
    /// (https://csrc.nist.gov/projects/cryptographic-standards-and-guidelines/example-values).
    @Test(
        "by SHA-256 matches the standard's examples",
        arguments: [
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
            ),
        ]
    )
    func sha256(message: String, digest: String) {
        #expect(Digest.sha256(Array(message.utf8)) == [UInt8](hexadecimal: digest))
    }

    @Test(
        "by SHA-512 matches the standard's examples",
        arguments: [
            (
                "",
                """
                cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce
                47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e
                """
            ),
            (
                "abc",
                """
                ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a
                2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f
                """
            ),
        ]
    )
    func sha512(message: String, digest: String) {
        #expect(Digest.sha512(Array(message.utf8)) == [UInt8](hexadecimal: digest))
    }

    @Test("of a million letters matches the standard's example")
    func long() {
        let expected = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
        #expect(
            Digest.sha256([UInt8](repeating: UInt8(ascii: "a"), count: 1_000_000)) == [UInt8](hexadecimal: expected)
        )
    }
}
