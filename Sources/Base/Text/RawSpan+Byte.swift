extension RawSpan {
    /// Returns the byte at a checked offset.
    ///
    /// The load is only unsafe for types that do not accept every bit pattern.
    @inlinable
    package func byte(at offset: Int) -> UInt8 {
        unsafe unsafeLoad(fromByteOffset: offset, as: UInt8.self)
    }
}
