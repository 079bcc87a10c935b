/// SHA-256 (FIPS 180-4), so that the library has no dependencies.
///
/// The system has none: CryptoKit exists on Apple systems alone, and on Linux the same interface is the package
/// swift-crypto. One implementation for both has one behaviour to test: `SHA256Tests` compare it with NIST's vectors.
/// It only adds, rotates and combines words, so its time depends on the length of the message alone.
enum SHA256 {
    static let blockLength = 64
    static let digestLength = 32

    static func digest(of message: [UInt8]) -> [UInt8] {
        var state: [UInt32] = [
            0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19,
        ]
        var schedule = [UInt32](repeating: 0, count: 64)
        var rest = message[...]
        while rest.count >= blockLength {
            add(rest.prefix(blockLength), to: &state, schedule: &schedule)
            rest = rest.dropFirst(blockLength)
        }
        let end = padded(rest, messageLength: message.count)
        for start in stride(from: 0, to: end.count, by: blockLength) {
            add(end[start..<(start + blockLength)], to: &state, schedule: &schedule)
        }
        return state.flatMap { word in
            [24, 16, 8, 0].map { shift in UInt8(truncatingIfNeeded: word >> UInt32(shift)) }
        }
    }

    /// Returns the last bytes of a message with a one bit, zeros, and the length in bits: one block or two.
    private static func padded(_ rest: ArraySlice<UInt8>, messageLength: Int) -> [UInt8] {
        var end = Array(rest) + [0x80]
        while end.count % blockLength != blockLength - 8 { end.append(0) }
        let bits = UInt64(messageLength) * 8
        for shift in stride(from: 56, through: 0, by: -8) {
            end.append(UInt8(truncatingIfNeeded: bits >> UInt64(shift)))
        }
        return end
    }

    private static func add(_ block: ArraySlice<UInt8>, to state: inout [UInt32], schedule: inout [UInt32]) {
        var byte = block.startIndex
        for index in 0..<16 {
            schedule[index] =
                UInt32(block[byte]) << 24 | UInt32(block[byte + 1]) << 16 | UInt32(block[byte + 2]) << 8
                | UInt32(block[byte + 3])
            byte += 4
        }
        for index in 16..<64 {
            let before15 = schedule[index - 15]
            let before2 = schedule[index - 2]
            let small0 = rotated(before15, by: 7) ^ rotated(before15, by: 18) ^ before15 >> 3
            let small1 = rotated(before2, by: 17) ^ rotated(before2, by: 19) ^ before2 >> 10
            schedule[index] = schedule[index - 16] &+ small0 &+ schedule[index - 7] &+ small1
        }
        // The names are those of the standard.
        var (a, b, c, d) = (state[0], state[1], state[2], state[3])
        var (e, f, g, h) = (state[4], state[5], state[6], state[7])
        for index in 0..<64 {
            let big1 = rotated(e, by: 6) ^ rotated(e, by: 11) ^ rotated(e, by: 25)
            let choice = e & f ^ ~e & g
            let first = h &+ big1 &+ choice &+ roundConstants[index] &+ schedule[index]
            let big0 = rotated(a, by: 2) ^ rotated(a, by: 13) ^ rotated(a, by: 22)
            let majority = a & b ^ a & c ^ b & c
            let second = big0 &+ majority
            (h, g, f, e) = (g, f, e, d &+ first)
            (d, c, b, a) = (c, b, a, first &+ second)
        }
        let words = [a, b, c, d, e, f, g, h]
        for index in 0..<8 { state[index] = state[index] &+ words[index] }
    }

    private static func rotated(_ word: UInt32, by count: UInt32) -> UInt32 {
        word >> count | word << (32 - count)
    }

    private static let roundConstants: [UInt32] = [
        0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5,
        0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174,
        0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
        0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967,
        0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85,
        0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070,
        0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
        0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2,
    ]
}
