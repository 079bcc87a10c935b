import Testing

@testable import Crypto

@Suite("An RSA key")
struct RSAKeyTests {
    /// A key, and a signature of the message that `openssl dgst -sha256 -sign` made.
    private static let modulus = [UInt8](
        hexadecimal: [
            "c34512ccb4e1d142c4db5078fce3bdcdfa32682cfb268995677865114990240912d73fc5bce3613485a22af689ad9a8d",
            "b07c6beab48a9d0e526b7611af8a3176a1f14ed233e49209b857b6f3b9c5b64f5fee18542d54d26a366223ee17b768c3",
            "e71b8bb00b2e868947859f871199fb1499b69a60eb5e697b87b6892888a4c5da2c5c577b86a9cda2c30534ce71973d8b",
            "3e73e786d1345f64643f37181eab51ebf23a761891960d60ff3a70436349c1e480515341e58baef27c3b51204bee1391",
            "ed57a107f16b9a9e4a8f2823c07e70e4920dc013a316f16109d1485ff0485eb09b0cb625d32f97e60ff1fb0d9ed418fe",
            "a8385cd9be05bdaf46358a01f5ca2749",
        ].joined()
    )
    private static let signature = [UInt8](
        hexadecimal: [
            "c1e161d5e53870c9d0a6b26e83a4e6ec1dfb20b020c58a4655070c1d50799b4b82168058d9bbe5f2e640733b59223290",
            "5dcad3e68ae9d6acecd35ed4ce60b9e4f3ed32f099dbee32516c729184813ec5ee3de8a6e4b9588c5a1f346eada098e6",
            "0be44f2800434523ced96d02af4b2bc4b5bf30c3baf2ec40ba8368d8379473c2b5f942dd3ac4749fd87f2aad781f275a",
            "0fb5558218ce2a4dfc08f8e281c34c304a58e0a997acbdf4583a42bcb87be88f21f567b0f3739e1497067744ce850da9",
            "6b8d4e9655c7ec3046eae67e3bcd0f83bd73a8187d7c962e24a4fa4447e6bacca9148ed1f717884db97c1cb41a31ba0e",
            "40fb2f32d1f7b36da398af0b6e48d5bd",
        ].joined()
    )
    private static let message = Array("signed by the command line".utf8)
    private static let exponent: [UInt8] = [1, 0, 1]

    @Test("checks a signature that another program made")
    func otherProgram() throws {
        let key = try PublicKey(modulus: Self.modulus, exponent: Self.exponent)
        #expect(key.verifies(signature: Self.signature, of: Self.message))
        #expect(!key.verifies(signature: Self.signature, of: Self.message + [0]))
        #expect(!key.verifies(signature: [], of: Self.message))
        #expect(!key.verifies(signature: Self.signature + [0], of: Self.message))
        #expect(!key.verifies(signature: [0] + Self.signature, of: Self.message))
        let zeroInFront = try PublicKey(modulus: [0] + Self.modulus, exponent: [0] + Self.exponent)
        #expect(zeroInFront.verifies(signature: Self.signature, of: Self.message))
    }

    @Test("refuses a signature with any one bit changed")
    func flippedBits() throws {
        let key = try PublicKey(modulus: Self.modulus, exponent: Self.exponent)
        for bit in 0..<Self.signature.count * 8 {
            var forged = Self.signature
            forged[bit / 8] ^= 1 << (bit % 8)
            #expect(!key.verifies(signature: forged, of: Self.message), "bit \(bit)")
        }
    }

    @Test("is generated, written, read again and signs")
    func roundTrip() throws {
        let made = try RSAPrivateKey.generate()
        let read = try RSAPrivateKey(pem: made.pem())
        let numbers = try made.publicNumbers()
        let publicKey = try PublicKey(modulus: numbers.modulus, exponent: numbers.exponent)
        #expect(try publicKey.verifies(signature: read.sign(Self.message), of: Self.message))
        #expect(numbers.exponent == [1, 0, 1])
        let other = try PublicKey(modulus: Self.modulus, exponent: Self.exponent)
        #expect(try !other.verifies(signature: read.sign(Self.message), of: Self.message))
    }

    @Test(
        "is refused when its numbers are too small, too large or even",
        arguments: [
            ([UInt8](repeating: 0xff, count: 255), [1, 0, 1], CryptoError.size(bits: 2040)),
            ([0x7f] + [UInt8](repeating: 0xff, count: 255), [1, 0, 1], .size(bits: 2047)),
            ([1] + [UInt8](repeating: 0xff, count: 1024), [1, 0, 1], .size(bits: 8193)),
            ([], [1, 0, 1], .size(bits: 0)),
            (modulus, [], .exponent),
            (modulus, [1], .exponent),
            (modulus, [2], .exponent),
            (modulus, [1, 0, 0], .exponent),
            (modulus, [1, 0, 0, 0, 1], .exponent),
            (modulus, [1, 0, 0, 0, 0, 0, 0, 0, 3], .exponent),
            (Array(modulus.dropLast()) + [0x48], [1, 0, 1], .evenModulus),
        ] as [([UInt8], [UInt8], CryptoError)]
    )
    func refusedNumbers(modulus: [UInt8], exponent: [UInt8], error: CryptoError) {
        #expect(throws: error) { try PublicKey(modulus: modulus, exponent: exponent) }
    }

    /// A key of another kind, made only for this test.
    private static let ellipticKey = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgfl6nFb4UeBTDp38a
        fyVMdNDnTY6ASYtEnS1TjIGNpA6hRANCAAScDq11lZbaSUWupF0/aJ65b5FZfjUg
        zuVrCu3g2VMjI9jeBeb2lOMvtfLg4LmNLhYDl24Hv0IRMxLk9466K6z5
        -----END PRIVATE KEY-----
        """

    @Test(
        "is refused when its file is not an RSA key",
        arguments: [
            ("", CryptoError.unreadable),
            ("nonsense", .unreadable),
            ("-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n", .unreadable),
            (ellipticKey, .otherKind),
            (
                """
                -----BEGIN RSA PRIVATE KEY-----
                Proc-Type: 4,ENCRYPTED
                DEK-Info: AES-128-CBC,00112233445566778899AABBCCDDEEFF

                AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
                -----END RSA PRIVATE KEY-----
                """, .unreadable
            ),
        ]
    )
    func refusedFile(pem: String, error: CryptoError) {
        #expect(throws: error) { try RSAPrivateKey(pem: Secret(pem)) }
    }

    @Test("cannot be generated too short")
    func shortKey() {
        #expect(throws: CryptoError.size(bits: 1024)) { try RSAPrivateKey.generate(bits: 1024) }
    }
}
