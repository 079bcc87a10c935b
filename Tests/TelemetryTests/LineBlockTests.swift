import Base
import Testing

@testable import Telemetry

@Suite("A block of lines")
struct LineBlockTests {
    @Test("is divided at the ends of lines; a line longer than the limit is alone")
    func division() {
        var block = LineBlock()
        for length in [0, 0, 100, 0] {
            var line = JSONLine()
            line.field("v", String(repeating: "x", count: length))
            block.append(line, at: BootInstant(milliseconds: 0))
        }
        let short = #"{"v":""}"#.utf8.count + 1
        #expect(block.ends == [short, 2 * short, 3 * short + 100, 4 * short + 100])
        #expect(block.lines(from: 0, upToBytes: 2 * short) == 0..<2)
        #expect(block.lines(from: 0, upToBytes: 2 * short - 1) == 0..<1)
        #expect(block.lines(from: 1, upToBytes: short) == 1..<2)
        #expect(block.lines(from: 2, upToBytes: short) == 2..<3)
        #expect(block.lines(from: 0, upToBytes: 4_096) == 0..<4)
        #expect(block.start(of: 4) == block.bytes.count)
    }
}
