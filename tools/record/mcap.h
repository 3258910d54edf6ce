/* mcap.h - the numbers of the MCAP file format (mcap.dev/spec, version 0). */
#ifndef TEC_TOOLS_RECORD_MCAP_H
#define TEC_TOOLS_RECORD_MCAP_H

#define TEC_MCAP_MAGIC "\x89MCAP0\r\n"
enum { TEC_MCAP_MAGIC_BYTES = 8, TEC_MCAP_RECORD_HEAD = 9 /* opcode u8, length u64 */ };

enum tec_mcap_opcode {
    TEC_MCAP_HEADER = 1,
    TEC_MCAP_FOOTER = 2,
    TEC_MCAP_SCHEMA = 3,
    TEC_MCAP_CHANNEL = 4,
    TEC_MCAP_MESSAGE = 5,
    TEC_MCAP_CHUNK_RECORD = 6,
    TEC_MCAP_MESSAGE_INDEX = 7,
    TEC_MCAP_CHUNK_INDEX = 8,
    TEC_MCAP_ATTACHMENT = 9,
    TEC_MCAP_ATTACHMENT_INDEX = 10,
    TEC_MCAP_STATISTICS = 11,
    TEC_MCAP_DATA_END = 15
};

#endif
