// The API reference: Swagger UI, from our own files, on the element that names the OpenAPI file.

const place = document.querySelector("[data-schema-url]");

window.SwaggerUIBundle({
  url: place.dataset.schemaUrl,
  domNode: place,
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  filter: false,
  // No badge: it would load an image from elsewhere.
  validatorUrl: null,
});
