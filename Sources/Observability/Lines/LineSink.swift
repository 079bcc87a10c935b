package import JSON

/// Whatever takes whole lines: a file, a pipe, a test's memory.
package protocol LineSink: Sendable {
    /// Takes a line without making the caller wait.
    func write(_ line: JSONLine)

    /// How many lines were lost since the start.
    var droppedLines: Int { get }
}
