import Base
import Foundation
import Testing

@testable import Crypto

@Suite("A binding key")
struct BindingKeyTests {
    private static let now = Timestamp(secondsSince1970: 1_795_342_272)

    /// The key of RFC 6979, appendix A.2.5, whose public point is known.
    private static let known = [UInt8](
        hexadecimal: "c9afa9d845ba75166b5c215767b1d6934e50c3db36e89b127b8a622b120f6721"
    )

    private static var claims: JSONLine {
        var claims = JSONLine()
        claims.field("htm", "POST")
        claims.field("iat", 1_795_342_272)
        return claims
    }

    private func key(_ scalar: [UInt8] = known) throws -> BindingKey {
        try BindingKey(id: #require(KeyID("0000000a")), scalar: Secret(utf8: scalar))
    }

    @Test("has the public point that follows from its number")
    func publicPoint() throws {
        let point = try key().publicPoint
        #expect(Hexadecimal.encode(point.x) == "60fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb6")
        #expect(Hexadecimal.encode(point.y) == "7903fe1008b8bc99a41ae9e95628bc64f2f1b20c2d7e9f5177a3c294d4462299")
    }

    @Test("signs with both numbers in fixed length, also if one begins with zeroes")
    func signatures() throws {
        let key = try key()
        let publicKey = try PublicKey(x: key.publicPoint.x, y: key.publicPoint.y)
        var startsWithZero = 0
        for number in 0..<600 {
            var claims = JSONLine()
            claims.field("number", number)
            let text = key.proof(claims)
            let signature = try #require(Base64URL.decode(text.split(separator: ".")[2]))
            #expect(signature.count == 64)
            if signature[0] == 0 || signature[32] == 0 { startsWithZero += 1 }
            #expect(try SignedToken(text).verifies(with: publicKey))
        }
        #expect(startsWithZero > 0, "600 signatures without a leading zero are as good as impossible")
    }

    @Test("makes proofs with the header of RFC 9449, and no private number")
    func header() throws {
        let proof = try key().proof(Self.claims)
        let parts = proof.split(separator: ".")
        #expect(parts.count == 3)
        let header = String(decoding: try #require(Base64URL.decode(parts[0])), as: UTF8.self)
        #expect(
            header == """
                {"typ":"dpop+jwt","alg":"ES256","jwk":{"kty":"EC","crv":"P-256",\
                "x":"YP7UuiVanTHJYet0xjVtaMBJuJI7Yfps5mliLmDyn7Y",\
                "y":"eQP-EAi4vJmkGunpVii8ZPLxsgwtfp9Rd6PClNRGIpk"}}
                """
        )
        let claims = String(decoding: try #require(Base64URL.decode(parts[1])), as: UTF8.self)
        #expect(claims == #"{"htm":"POST","iat":1795342272}"#)
    }

    @Test(
        "is a number from one to below the order of P-256",
        arguments: [
            ("0000000000000000000000000000000000000000000000000000000000000000", false),
            ("0000000000000000000000000000000000000000000000000000000000000001", true),
            ("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632550", true),
            ("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551", false),
            ("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632552", false),
            ("ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff", false), ("01", false), ("", false),
        ]
    )
    func range(scalar: String, isKey: Bool) {
        let scalar = [UInt8](hexadecimal: scalar)
        if isKey {
            #expect(throws: Never.self) { try key(scalar) }
        } else {
            #expect(throws: CryptoError.scalar) { try key(scalar) }
        }
    }

    @Test("is a line of the key file with the word binding, and does not seal")
    func file() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("keys")
        let sealing = try KeyRingFile.generate(path: path)
        let binding = try KeyRingFile.addBinding(path: path)
        let ring = try KeyRingFile.load(path: path)
        #expect(ring.keyIDs == [sealing, binding])
        #expect(ring.sealingKeyID == sealing)
        #expect(ring.bindingKey?.id == binding)
        #expect(try ring.bindingKey(binding).id == binding)
        #expect(throws: CryptoError.unknownKey(sealing)) { try ring.bindingKey(sealing) }
        #expect(try folder.text().contains(" binding\n"))
        #expect(try folder.mode(of: "keys") == 0o600)
    }

    @Test("that is added later binds, while the former ones still sign for what is bound to them")
    func second() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("keys")
        let sealing = try KeyRingFile.generate(path: path)
        let first = try KeyRingFile.addBinding(path: path)
        let second = try KeyRingFile.addBinding(path: path)
        #expect(try KeyRingFile.load(path: path).bindingKey?.id == second)
        let point = try KeyRingFile.load(path: path).bindingKey(first).publicPoint
        try KeyRingFile.retire(first, at: Self.now, path: path)
        let ring = try KeyRingFile.load(path: path)
        #expect(ring.keyIDs == [sealing, second, first])
        #expect(ring.keys.map(\.role) == [.active, .active, .retired(since: Self.now)])
        #expect(try ring.bindingKey(first).publicPoint == point)
        #expect(try folder.text().contains(" binding retired 1795342272\n"))
        try KeyRingFile.remove(first, path: path)
        #expect(throws: CryptoError.unknownKey(first)) { try KeyRingFile.load(path: path).bindingKey(first) }
    }

    @Test("never becomes the key that seals")
    func promotion() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("keys")
        _ = try KeyRingFile.generate(path: path)
        let binding = try KeyRingFile.addBinding(path: path)
        let before = try folder.text()
        #expect(throws: FileError.self) { try KeyRingFile.promote(binding, path: path) }
        #expect(try folder.text() == before)
        let alone = try folder.write("0000000a \(KeyText.counting) binding\n", to: "alone")
        #expect(throws: fault(alone, .noSealingKey)) { try KeyRingFile.load(path: alone) }
    }

    @Test("is another key than that of the same bytes without the word")
    func otherKind() throws {
        let folder = try TemporaryFolder()
        let rest = "0000000b \(KeyText.zeroes)\n"
        let binding = try KeyRingFile.load(path: folder.write("0000000a \(KeyText.counting) binding\n\(rest)", to: "a"))
        let sealing = try KeyRingFile.load(path: folder.write("0000000a \(KeyText.counting)\n\(rest)", to: "b"))
        let id = try #require(KeyID("0000000a"))
        #expect(sealing.missingKeys(of: binding) == [id])
        let context = SealContext(owner: 0 as Int64, column: "key_check")
        let sealed = try binding.seal(Secret("known"), for: context, with: id)
        #expect(try binding.open(sealed, for: context) == Secret("known"))
        #expect(throws: CryptoError.damaged(id)) { try sealing.open(sealed, for: context) }
    }

    @Test(
        "has a valid line",
        arguments: [
            ("0000000a \(KeyText.zeroes) binding", "it is not a private key of P-256"),
            ("0000000a \(KeyText.counting) binding pending", "cannot be pending"),
            ("0000000a \(KeyText.counting) binding binding", "only the word \"pending\""),
            ("0000000a \(KeyText.counting) retired 1795342272 binding", "the line is not: <id> <base64 key>"),
            ("0000000a \(KeyText.counting) binding retired", "only the word \"pending\""),
        ]
    )
    func badLine(line: String, complaint: String) throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("0000000b \(KeyText.counting)\n\(line)\n")
        let error = #expect(throws: FileError.self) { try KeyRingFile.load(path: path) }
        #expect("\(try #require(error))".contains(complaint))
        #expect("\(try #require(error))".contains("line 2"))
    }

    @Test("is found again in the file by a ring in memory")
    func reload() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("keys")
        _ = try KeyRingFile.generate(path: path)
        let ring = try ReloadableKeyRing { try KeyRingFile.load(path: path) }
        let binding = try KeyRingFile.addBinding(path: path)
        #expect(ring.current.bindingKey == nil)
        #expect(try ring.bindingKey(binding).id == binding)
        let unknown = try #require(KeyID("0000000f"))
        #expect(throws: CryptoError.unknownKey(unknown)) { try ring.bindingKey(unknown) }
    }
}
