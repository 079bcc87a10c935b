internal import Base

/// Whole lines in one buffer, each with its line break, so that one `write` takes many.
struct LineBlock {
    private(set) var bytes: [UInt8] = []
    private(set) var ends: [Int] = []
    private(set) var arrivals: [BootInstant] = []

    init() {}

    /// Makes an empty block with room for as many lines as another one has, because they often come as fast again.
    init(asLargeAs block: LineBlock) {
        bytes.reserveCapacity(block.bytes.count)
        ends.reserveCapacity(block.count)
        arrivals.reserveCapacity(block.count)
    }

    var count: Int { ends.count }

    mutating func append(_ line: JSONLine, at now: BootInstant) {
        line.append(to: &bytes)
        bytes.append(UInt8(ascii: "\n"))
        ends.append(bytes.count)
        arrivals.append(now)
    }

    /// The offset of the beginning of a line, or of the end of the last one.
    func start(of line: Int) -> Int { line == 0 ? 0 : ends[line - 1] }

    /// Returns lines from `first` on that have at most `limit` bytes together.
    ///
    /// A longer line is alone.
    func lines(from first: Int, upToBytes limit: Int) -> Range<Int> {
        var end = first + 1
        while end < count, ends[end] - start(of: first) <= limit { end += 1 }
        return first..<end
    }
}
