/// New secrets, from libcrypto's random generator.
extension Secret {
    static func random(byteCount: Int) throws(SealError) -> Secret {
        try Secret(capacity: byteCount) { (buffer) throws(SealError) in
            try LibCrypto.fillRandomly(&buffer, in: 0..<buffer.byteCount)
            return buffer.byteCount
        }
    }

    /// Makes a text of the prefix and random bytes in base64url; it is for printing, so its copies are not wiped.
    package static func randomText(prefix: String, byteCount: Int) throws(SealError) -> Secret {
        let random = try random(byteCount: byteCount)
        let bytes = random.withBytes { span in (0..<span.byteCount).map { span.byte(at: $0) } }
        return Secret(prefix + Base64URL.encode(bytes))
    }
}
