package import JSON

/// Whatever takes whole lines: a file, a pipe, a test's memory.
package protocol LineSink: Sendable {
    /// Takes a line without making the caller wait.
    ///
    /// Answers whether it can be counted on: `false` when the line is lost, or may be because the one before it was.
    @discardableResult
    func write(_ line: JSONLine) -> Bool

    /// How many lines were lost since the start.
    var droppedLines: Int { get }
}
