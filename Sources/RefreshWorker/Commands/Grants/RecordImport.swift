/// What takes a stream of bytes, stores the records in it, and counts.
protocol RecordImport {
    var tally: ImportTally { get }

    /// Takes the next bytes.
    mutating func feed(_ chunk: [UInt8]) async throws
    /// Stores what is left.
    mutating func finish() async throws
}
