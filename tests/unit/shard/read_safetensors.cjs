// SPDX-License-Identifier: Apache-2.0
// Reads a .safetensors file by Hugging Face's @huggingface/hub (npm), as from a hub on this machine.
// Prints of each tensor name, type and shape, then the metadata. Exits with 2 without the package.
const fs = require('fs');
const http = require('http');

let hub;
try {
  hub = require('@huggingface/hub');
} catch {
  process.exit(2);
}
const content = fs.readFileSync(process.argv[2]);

const server = http.createServer((request, response) => {
  if (!request.url.endsWith('/model.safetensors')) return response.writeHead(404).end();
  const range = /bytes=(\d+)-(\d*)/.exec(request.headers.range || '');
  const from = range ? Number(range[1]) : 0;
  const to = Math.min(range && range[2] ? Number(range[2]) : content.length - 1, content.length - 1);
  response.writeHead(range ? 206 : 200, {
    'ETag': '"weft"',
    'Accept-Ranges': 'bytes',
    'Content-Length': to + 1 - from,
    'Content-Range': `bytes ${from}-${to}/${content.length}`,
  });
  response.end(request.method === 'HEAD' ? undefined : content.subarray(from, to + 1));
});

server.listen(0, '127.0.0.1', async () => {
  const hubUrl = `http://127.0.0.1:${server.address().port}`;
  const { header } = await hub.parseSafetensorsMetadata(
    { repo: 'weft/model', path: 'model.safetensors', hubUrl });
  for (const name of Object.keys(header).filter((key) => key !== '__metadata__').sort())
    console.log(name, header[name].dtype, header[name].shape.join('x'));
  for (const [key, value] of Object.entries(header.__metadata__ ?? {}).sort())
    console.log('metadata', key, value);
  process.exit(0);
});
